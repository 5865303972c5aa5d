"""Whether those who asked got what they were promised: nothing acknowledged is lost, everything ends for a reason of
its own, and every answer belongs to its question."""

from collections import Counter
from collections.abc import Iterator

from torture.chaos.ledger import Line
from torture.chaos.outside import Effect
from torture.chaos.picture import ENDS, Picture, Row, Violation

UNSURE = ("payroll",)  # whose list differs from life to life: a clear, final Conflict is as good an end as an answer
NO_STORE = 3  # how a process ends that was told no before it had begun
_KILLED = -9
_TERMINATED = -15
DEADLY = 4  # processes that a task must really have lost before it may be given up


def acknowledged(seen: Picture, lines: list[Line]) -> Iterator[Violation]:
    """Every acknowledged task is there, one for each key, and nothing that nobody asked for."""
    tasks: dict[str, set[str]] = {}
    for line in lines:
        if line["kind"] == "ack":
            tasks.setdefault(line["key"], set()).add(line["task"])
            if line["task"] not in seen.tasks and line["task"] not in seen.pruned:
                sentence = f"'{line['key']}' was acknowledged as {line['task']} and is not there"
                yield Violation("ack.lost", sentence, line["task"])
    for key, several in tasks.items():
        if len(several) > 1:
            yield Violation("ack.twice", f"'{key}' was acknowledged as several tasks: {sorted(several)}", min(several))
    asked = {line["text"] for line in lines if line["kind"] == "asks"}
    for task, row in seen.tasks.items():
        if not row["parent"] and seen.question(task) not in asked:
            yield Violation("ask.unknown", f"task {task} was asked for by nobody: {seen.question(task)!r}", task)


def told(seen: Picture, lines: list[Line]) -> Iterator[Violation]:
    """What a program was told of a run, or of a cancel, is what the store says."""
    for line in lines:
        if line.get("task") not in seen.tasks:
            continue
        task = line["task"]
        if line["kind"] == "told" and line["state"] == "completed":
            end = seen.ends.get(task, [None])[0]
            if end is None or end.data.get("result") != line["value"]:
                yield Violation("told.other", f"task {task} was told as completed, and the store says otherwise", task)
        state = seen.tasks[task]["state"]
        if line["kind"] == "cancelled" and state in ENDS.values() and state != "cancelled":
            yield Violation("cancel.lost", f"task {task} was told as cancelled and is {state}", task)


def ended(seen: Picture, lines: list[Line]) -> Iterator[Violation]:
    """Everything has ended, and what did not complete has a reason of its own."""
    by_hand = {line["run"] for line in lines if line["kind"] == "cancels"}
    given_up = {line["text"] for line in lines if line["kind"] == "gives up"}
    deaths = _deaths(lines)
    for task, row in seen.tasks.items():
        asked = f"task {task} ({row['asked_how']} {row['holder']}: {seen.question(task)!r})"
        if row["state"] not in ENDS.values():
            yield Violation(f"open.{row['state']}", f"{asked} is still {row['state']}", task)
        elif row["state"] != "completed" and row["run"] not in by_hand and (ends := seen.ends.get(task)):
            said = ends[0].data
            queued = not row["parent"] or row["asked_how"] != "delegate"
            unsure = row["holder"] in UNSURE and said.get("type") == "Conflict"
            poison = row["state"] == "dead" and deaths[task] >= DEADLY
            left = row["state"] == "cancelled" and not row["parent"] and seen.question(task) in given_up
            if queued and not (unsure or poison or left):
                kind = f"ended.{row['state']}.{said.get('type', '')}"
                yield Violation(kind, f"{asked} {row['state']}: {said.get('error', '')[:300]}", task)


def _deaths(lines: list[Line]) -> Counter[str]:
    """Count for each task the processes that had begun it and were killed or stood still."""
    harmed = {line["target"] for line in lines if line["kind"] in ("killed", "stopped")}
    begun = {(line["task"], line["who"]) for line in lines if line["kind"] == "began" and line["who"] in harmed}
    return Counter(task for task, _ in begun)


def answered(seen: Picture, found: list[Effect]) -> Iterator[Violation]:
    """Every answer belongs to its question, and every receipt to an effect that took place."""
    done = {effect.receipt for effect in found if effect.doings}
    for task, (end, *_) in seen.ends.items():
        if end.kind == "task.completed" and task in seen.began:
            result = end.data["result"]
            for violation in (*_wrong(seen.question(task), result, done), *_unheard(seen, result)):
                yield violation._replace(sentence=f"task {task}: {violation.sentence}", task=task)


def _wrong(question: str, result: Row, done: set[str]) -> Iterator[Violation]:
    if not result["q"].startswith(question):
        yield Violation("answer.other", f"it was asked {question!r} and answered {result['q']!r}")
    for asked, answer in result.get("parts", ()):
        if answer["q"] != asked:
            yield Violation("answer.other", f"it asked {asked!r} and got the answer to {answer['q']!r}")
    for name, what, receipt in result.get("effects", ()):
        if receipt != f"{name}: {what}":
            yield Violation("receipt.other", f"for '{name}: {what}' it got the receipt {receipt!r}")
        elif receipt not in done:
            yield Violation("effect.missing", f"it has the receipt {receipt!r}, and nobody did it")


def _unheard(seen: Picture, result: Row) -> Iterator[Violation]:
    """Whoever spawned tasks heard of each once. Of others only if they did not complete: retried by hand, it hears of
    those that an earlier try had spawned in their place."""
    heard, spawned = Counter(result.get("heard", ())), result.get("spawned", ())
    others = [task for task in heard if task not in spawned and seen.tasks.get(task, {}).get("state") == "completed"]
    if any(heard[task] != 1 for task in spawned) or others:
        sentence = f"it spawned {', '.join(spawned)} and heard of {', '.join(heard.elements())}"
        yield Violation("announce.unheard", sentence)


def announced(seen: Picture) -> Iterator[Violation]:
    """The end of a spawned task is announced once, and no message is handed out twice."""
    messages = Counter(message["about"] for message in seen.messages if message["about"])
    for task, row in seen.tasks.items():
        wanted = int(row["asked_how"] == "spawn" and row["state"] in ENDS.values())
        if messages[task] != wanted:
            sentence = f"task {task} ({row['asked_how']}) was announced {messages[task]} times, not {wanted}"
            yield Violation("announce.times", sentence, task)
    taken = Counter(one for event in seen.events if event.kind == "messages.taken" for one in event.data["ids"])
    for message, number in taken.items():
        if number > 1:
            yield Violation("message.twice", f"message {message} was handed out {number} times")


def lived(lines: list[Line]) -> Iterator[Violation]:
    """No process ends by itself, unless it found no store when it began; and one that is told to stop stops."""
    stopping = {line["target"] for line in lines if line["kind"] == "terminated"}
    opened = {line["who"] for line in lines if line["kind"] == "opened"}
    for line in lines:
        who = line.get("target", "")
        if line["kind"] == "ended" and line["code"] not in _ends(who, stopping, opened):
            sentence = f"{who} ended by itself with {line['code']}; its log says why (process {line['process']})"
            yield Violation("process.ended", sentence)
        elif line["kind"] == "did not stop":
            yield Violation("process.deaf", f"{who} was told to stop and had not after {line['seconds']:g} s")
        elif line["kind"] == "not worked off":
            yield Violation("open.left", f"the last worker, in peace, was not done after {line['seconds']:g} s")


def _ends(who: str, stopping: set[str], opened: set[str]) -> tuple[int, ...]:
    """Say how a process may end: killed, without a store when it began, or well once it was done or told to stop; one
    that is told so before it listens is ended by the signal."""
    well = (0,) if who in stopping or who.startswith("last/") else ()
    if who in opened:
        return (_KILLED, *well)
    return (_KILLED, NO_STORE, *well, *((_TERMINATED,) if who in stopping else ()))
