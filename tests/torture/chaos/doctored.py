"""Ways to break what a chaos run left behind, and what the checker has to call each of them."""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torture.chaos.checker import violations
from torture.chaos.ledger import Line, ledgers
from torture.chaos.picture import Violation, picture


class Left:
    """A copy of what an undisturbed run left behind, to be doctored: the open database, and the lines of the ledger."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.database = sqlite3.connect(folder / "team.db", isolation_level=None)
        self.lines = ledgers(folder / "ledger")

    def violations(self) -> list[Violation]:
        return violations(picture(self.folder, ""), self.lines)

    def kinds(self) -> set[str]:
        return {violation.kind for violation in self.violations()}

    def one(self, asked: str, *given: object) -> Any:
        return self.database.execute(asked, given).fetchone()

    def run(self, statement: str, *given: object) -> None:
        assert self.database.execute(statement, given).rowcount > 0, "it is to change something"

    def note(self, kind: str, **what: object) -> None:
        """Write a line at the end of the ledger, by a process that nothing has happened to."""
        self.lines.append({"kind": kind, "who": "someone", "at": self.lines[-1]["at"] + 1_000, **what})

    def add(self, kind: str, task: str, data: dict[str, Any]) -> None:
        """Put an event at the end of the journal."""
        row = self.one("SELECT workspace, max(seq), run, session, agent FROM event WHERE task = ?", task)
        last = self.one("SELECT max(seq) FROM event")[0] + 1
        columns = (row[0], last, kind, 1, *row[2:4], task, row[4], json.dumps(data), "not a hash")
        names = "workspace, seq, kind, at, run, session, task, agent, data, hash"
        self.run(f"INSERT INTO event ({names}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", *columns)

    def say(self, task: str, change: Callable[[dict[str, Any]], None]) -> None:
        """Change what a task answered."""
        (text,) = self.one("SELECT data FROM event WHERE task = ? AND kind = 'task.completed'", task)
        data = json.loads(text)
        change(data["result"])
        self.run("UPDATE event SET data = ? WHERE task = ? AND kind = 'task.completed'", json.dumps(data), task)

    def completed(self, agent: str) -> str:
        """Find a task that this agent has completed."""
        asked = "SELECT id FROM task WHERE holder = ? AND state = 'completed' ORDER BY id"
        return self.one(asked, agent)[0]

    def call(self) -> list[Line]:
        """Find the lines of an effect that is to be done once, in their order."""
        first = next(line for line in self.lines if line["kind"] == "kept" and line["times"] == 1)
        return [line for line in self.lines if line.get("call") == first["call"]]

    def do_again(self, *, killed: bool, kept: bool, error: str = "", says: str = "", key: str | None = None) -> None:
        """Have an effect done by two processes: the first did not keep it, or did."""
        first = self.call()
        again = [{**line, "who": "someone", "call": "again"} for line in first]
        if not kept:
            self.lines.remove(first[-1])
        if error:
            self.note(
                "missed", **{name: first[0][name] for name in ("name", "what", "times", "call")}, error=error, says=says
            )
        if killed:
            self.note("killed", target=first[0]["who"])
        else:
            self.lines = [line for line in self.lines if line["kind"] not in ("killed", "terminated", "ended")]
        for line in again:
            self.note(line.pop("kind"), **{name: line[name] for name in line if name != "at"} | {"key": key})


def drop_event(left: Left) -> None:
    left.run("DELETE FROM event WHERE seq = 20")


def change_event(left: Left) -> None:
    left.run("UPDATE event SET at = at + 1 WHERE seq = 20")


def drop_task(left: Left) -> None:
    left.run("DELETE FROM task WHERE id = ?", next(line["task"] for line in left.lines if line["kind"] == "ack"))


def move_task(left: Left) -> None:
    left.run("UPDATE task SET holder = 'someone' WHERE id = ?", left.completed("pricer"))


def end_twice(left: Left) -> None:
    left.add("task.failed", left.completed("pricer"), {"error": "late", "type": "Failed"})


def leave_open(left: Left) -> None:
    left.run("UPDATE task SET state = 'running', ended = NULL WHERE id = ?", left.completed("guest"))


def fail(left: Left) -> None:
    task = left.completed("stamper")
    data = json.dumps({"error": "no time", "type": "TimedOut"})
    left.run("UPDATE event SET kind = 'task.failed', data = ? WHERE task = ? AND kind = 'task.completed'", data, task)
    left.run("UPDATE task SET state = 'failed' WHERE id = ?", task)


def die_without_deaths(left: Left) -> None:
    fail(left)
    left.run("UPDATE event SET kind = 'task.died' WHERE kind = 'task.failed' AND data LIKE '%no time%'")
    left.run("UPDATE task SET state = 'dead' WHERE ended IN (SELECT seq FROM event WHERE kind = 'task.died')")


def lose_ack(left: Left) -> None:
    left.note("ack", key="new", task="nowhere")


def acknowledge_twice(left: Left) -> None:
    line = next(line for line in left.lines if line["kind"] == "ack")
    left.note("ack", key=line["key"], task=left.completed("pricer"))


def ask_for_nothing(left: Left) -> None:
    left.lines = [line for line in left.lines if line["kind"] != "asks"]


def tell_otherwise(left: Left) -> None:
    left.note("told", task=left.completed("pricer"), state="completed", value="something else")


def lose_cancel(left: Left) -> None:
    left.note("cancelled", task=left.completed("pricer"), run="")


def swap_answer(left: Left) -> None:
    left.say(left.completed("pricer"), lambda result: result.update(q="price of something else"))


def swap_part(left: Left) -> None:
    left.say(left.completed("shop"), lambda result: result["parts"][0].__setitem__(0, "price of something else"))


def swap_receipt(left: Left) -> None:
    left.say(left.completed("shop"), lambda result: result["effects"][0].__setitem__(2, result["effects"][1][2]))


def never_do(left: Left) -> None:
    receipt = ["charge", "nothing at all", "charge: nothing at all"]
    left.say(left.completed("shop"), lambda result: result["effects"].append(receipt))


def record_twice(left: Left) -> None:
    task, data = left.one("SELECT task, data FROM event WHERE kind = 'effect.done' AND data NOT LIKE '%stamp%'")
    left.add("effect.done", task, json.loads(data))


def record_what_nobody_asked(left: Left) -> None:
    left.add("effect.done", left.completed("guest"), {"key": "serve", "result": "serve: nobody"})


def do_what_is_kept(left: Left) -> None:
    left.do_again(killed=True, kept=True)


def do_again_without_reason(left: Left) -> None:
    left.do_again(killed=False, kept=False)


def do_again_as_the_store_said_no(left: Left) -> None:
    left.do_again(killed=False, kept=False, error="StoreBusy")


def do_again_as_the_task_was_taken(left: Left) -> None:
    says = "'worker' no longer holds this task: another process has taken it over"
    left.do_again(killed=False, kept=False, error="Refused", says=says)


def do_at_once(left: Left) -> None:
    """The first keeps it when the second has begun."""
    left.do_again(killed=False, kept=True)
    kept = next(line for line in left.call() if line["kind"] == "kept")
    kept["at"] = left.lines[-1]["at"]


def do_again_under_another_key(left: Left) -> None:
    next(line for line in left.call() if line["kind"] == "before")["key"] = "one"
    left.do_again(killed=True, kept=False, key="other")


def hear_nothing(left: Left) -> None:
    left.say(left.completed("host"), lambda result: result["heard"].pop())


def hear_twice(left: Left) -> None:
    left.say(left.completed("host"), lambda result: result["heard"].append(result["heard"][0]))


def hear_of_another(left: Left) -> None:
    left.say(left.completed("host"), lambda result: result["heard"].append(left.completed("pricer")))


def announce_nothing(left: Left) -> None:
    left.run("DELETE FROM message WHERE about = (SELECT id FROM task WHERE asked_how = 'spawn' LIMIT 1)")


def hand_out_twice(left: Left) -> None:
    task, data = left.one("SELECT task, data FROM event WHERE kind = 'messages.taken'")
    left.add("messages.taken", task, json.loads(data))


def end_by_itself(left: Left) -> None:
    left.note("ended", target="worker-0/1", process=2, code=1)


def end_as_the_store_said_no(left: Left) -> None:
    left.note("ended", target=next(line["who"] for line in left.lines if line["kind"] == "opened"), process=2, code=3)


def end_by_the_signal(left: Left) -> None:
    who = next(line["who"] for line in left.lines if line["kind"] == "opened")
    left.note("terminated", target=who)
    left.note("ended", target=who, process=2, code=-15)


def never_stop(left: Left) -> None:
    left.note("did not stop", target="worker-0/1", seconds=15)


def never_be_done(left: Left) -> None:
    left.note("not worked off", seconds=90)


WAYS: list[tuple[Callable[[Left], None], str]] = [
    (drop_event, "chain.gap"),
    (change_event, "chain.hash"),
    (drop_task, "fold.missing"),
    (drop_task, "ack.lost"),
    (move_task, "fold.differs"),
    (end_twice, "end.twice"),
    (leave_open, "open.running"),
    (fail, "ended.failed.TimedOut"),
    (die_without_deaths, "ended.dead.TimedOut"),
    (lose_ack, "ack.lost"),
    (acknowledge_twice, "ack.twice"),
    (ask_for_nothing, "ask.unknown"),
    (tell_otherwise, "told.other"),
    (lose_cancel, "cancel.lost"),
    (swap_answer, "answer.other"),
    (swap_part, "answer.other"),
    (swap_receipt, "receipt.other"),
    (never_do, "effect.missing"),
    (record_twice, "effect.recorded-twice"),
    (record_what_nobody_asked, "effect.unknown"),
    (do_what_is_kept, "effect.again"),
    (do_again_without_reason, "effect.repeated"),
    (do_again_as_the_store_said_no, "effect.store-said-no"),
    (do_again_as_the_task_was_taken, "effect.taken-alive"),
    (do_at_once, "effect.taken-alive"),
    (do_again_under_another_key, "effect.key"),
    (hear_nothing, "announce.unheard"),
    (hear_twice, "announce.unheard"),
    (hear_of_another, "announce.unheard"),
    (announce_nothing, "announce.times"),
    (hand_out_twice, "message.twice"),
    (end_by_itself, "process.ended"),
    (end_as_the_store_said_no, "process.ended"),
    (end_by_the_signal, "process.ended"),
    (never_stop, "process.deaf"),
    (never_be_done, "open.left"),
]
