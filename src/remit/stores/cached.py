"""The view that decisions read from. It caches what its own process wrote, as long as no other process has written
since.

Nearly every transaction reads a standing, a run, a breaker or an event, and usually one that was just written. The
cache makes a fence on every write and the figures of a run at every hop nearly free.
"""

from collections.abc import Sequence
from contextlib import suppress
from operator import add
from typing import Any, Final, cast

from remit.core.breaker import Breaker
from remit.core.change import Change
from remit.core.entry import Entry, Message
from remit.core.events import Event
from remit.core.identity import UsedKey
from remit.core.lifecycle import NO_RUN, Record, RunFacts, Standing, first_members
from remit.core.money import UNITS, Hold, Lease, LeaseMove, Unit
from remit.core.projection import ONE_TASK, Count
from remit.core.recovery import Cooling
from remit.core.scope import Scope
from remit.errors import StoreError
from remit.ports import KeyRow
from remit.stores.history import Ask, Values, event_of
from remit.stores.views import SqlView, lease_of, run_facts

EVENTS: Final = 1_024  # latest events; a claim reads the first event of its task
RUNS: Final = 4_096
_TIES: Final = {"add": 1, "drop": -1, "settle": -1, "answer": -1}


class CachedView(SqlView):
    """A view with a cache. Its owner calls `forget` when another process may have written."""

    __slots__ = (
        "_breakers",
        "_coolings",
        "_disputes",
        "_empty",
        "_events",
        "_leases",
        "_placed",
        "_runs",
        "_same_requests",
        "_secrets",
        "_silent",
        "_standings",
        "_used_keys",
    )

    def __init__(self, workspace: str, ask: Ask) -> None:
        super().__init__(workspace, ask)
        self._standings: dict[str, Standing] = {}
        self._breakers: dict[str, Breaker] = {}
        self._events: dict[int, Event] = {}
        self._runs: dict[str, RunFacts] = {}
        self._same_requests: dict[str, list[Record]] = {}
        self._used_keys: dict[str, UsedKey | None] = {}
        self._leases: dict[tuple[str, Unit], Lease | None] = {}
        self._placed: dict[str, Hold] = {}
        self._disputes: dict[str, Hold | None] = {}
        self._coolings: dict[str, Cooling] | None = None
        self._secrets: dict[str, KeyRow | None] = {}
        self._empty: dict[str, int] = {}  # namespaces without entries, and since when
        self._silent: set[str] = set()  # runs and tasks without messages

    def prime(
        self, standings: Sequence[Values], keys: Sequence[str], records: Sequence[Values], runs: Sequence[Values]
    ) -> None:
        """Cache rows that were fetched in advance for the decisions of a transaction."""
        self._standings.update({row[0]: Standing(*row[1:]) for row in standings})
        self._runs.update({row[0]: run_facts(row) for row in runs})
        self._same_requests = {key: [] for key in keys}
        for record in sorted((Record(*row) for row in records), key=lambda record: -record.began):
            self._same_requests[record.dedup_key].append(record)

    def prime_keys(self, keys: Sequence[str], used: Sequence[Values]) -> None:
        """Cache the prefetched uses of idempotency keys, or that they are unused."""
        self._used_keys = dict.fromkeys(keys)
        self._used_keys.update({row[0]: UsedKey(*row) for row in used})

    def prime_leases(self, ids: Sequence[str], leases: Sequence[Values]) -> None:
        """Cache prefetched leases, or that these ids have none."""
        for id_ in ids:
            for unit in UNITS:
                self._leases.setdefault((id_, unit), None)
        self._leases.update({(row[0], row[1]): lease_of(row) for row in leases})

    def prime_disputes(self, agents: Sequence[str], holds: Sequence[Values]) -> None:
        """Cache the prefetched unsettled bills of agents, or that they have none."""
        self._disputes = dict.fromkeys(agents)
        self._disputes.update({hold.agent: hold for hold in (Hold(*row) for row in holds)})

    def forget(self) -> None:
        """Drop the whole cache: another process may have written, or a transaction was rolled back."""
        self._standings.clear()
        self._breakers.clear()
        self._events.clear()
        self._runs.clear()
        self._same_requests.clear()
        self._used_keys.clear()
        self._leases.clear()
        self._placed.clear()
        self._disputes.clear()
        self._coolings = None
        self._secrets.clear()
        self._empty.clear()
        self._silent.clear()

    def used_key(self, key: str) -> UsedKey | None:
        return self._used_keys[key] if key in self._used_keys else super().used_key(key)

    def same_requests(self, dedup_key: str, since: int) -> list[Record]:
        known = self._same_requests.get(dedup_key)
        if known is None:
            return super().same_requests(dedup_key, since)
        return [record for record in known if record.asked_at > since]

    def _came_along(self, rows: Sequence[Values]) -> None:
        for row in rows:
            with suppress(StoreError):  # a damaged event raises when it is needed
                self._keep(event_of(row))

    def standing(self, task: str) -> Standing | None:
        return self._standings.get(task) or super().standing(task)

    def run(self, run: str) -> RunFacts:
        facts = self._runs.get(run)
        if facts is None:
            facts = super().run(run)
            if facts is not NO_RUN:
                self._remember_run(facts)
        return facts

    def lease(self, lease: str, unit: Unit) -> Lease | None:
        key = (lease, unit)
        if key not in self._leases:
            self._leases[key] = super().lease(lease, unit)
        return self._leases[key]

    def move(self, move: LeaseMove) -> bool:
        """Add to the figures of a cached lease. Return whether it is cached and balances."""
        key = (move.lease, move.unit)
        known = self._leases.pop(key, None)
        if known is None or not (after := known.moved(move)).is_balanced:
            return False
        self._leases[key] = after
        return True

    def hold(self, hold: str) -> Hold | None:
        return self._placed.get(hold) or super().hold(hold)

    def disputed(self, agent: str) -> Hold | None:
        if agent not in self._disputes:
            self._disputes[agent] = super().disputed(agent)
        return self._disputes[agent]

    def breaker(self, name: str) -> Breaker:
        breaker = self._breakers.get(name)
        if breaker is None:
            breaker = self._breakers[name] = super().breaker(name)
        return breaker

    def coolings(self) -> dict[str, Cooling]:
        if self._coolings is None:
            self._coolings = super().coolings()
        return self._coolings

    def secret(self, name: str) -> KeyRow | None:
        if name not in self._secrets:
            self._secrets[name] = super().secret(name)
        return self._secrets[name]

    def forget_secrets(self) -> None:
        """Drop the cached provider keys, because some have changed."""
        self._secrets.clear()

    def recent(self, scope: Scope, now: int, limit: int) -> list[Entry]:
        since = self._empty.get(scope.namespace)
        if since is not None and now >= since:
            return []
        found = super().recent(scope, now, limit)
        if not found and scope.key is None and not scope.prefix:
            self._empty[scope.namespace] = now
            if len(self._empty) > RUNS:
                del self._empty[next(iter(self._empty))]
        return found

    def waiting(self, run: str, agent: str, task: str, limit: int) -> list[Message]:
        if run in self._silent and (not task or task in self._silent):
            return []
        return super().waiting(run, agent, task, limit)

    def event(self, seq: int) -> Event | None:
        return self._events.get(seq) or super().event(seq)

    def learn(self, event: Event, changes: list[Change]) -> None:
        """Update the cache with the changes of an event that was just written."""
        row: dict[str, Any]
        for table, verb, key, row in changes:
            if table == "task":
                self._learn_task(event, verb, key[0], row)
            elif table == "entry":
                self._empty.pop(key[0], None)
            elif table == "run":
                self._runs.pop(key[0], None)
            elif table == "breaker":
                self._breakers[key[0]] = Breaker(row["state"], row["failures"], row["until"], row["probe"], row["why"])
            elif table == "event":
                # Events were removed from the journal: cached ones may be among them.
                self._events.clear()
            elif table == "lease":
                self._learn_lease(verb, (row["id"], row["unit"]), row)
            elif table == "hold":
                self._learn_hold(verb, key[0], row)
                self._learn_tie(verb, row)
            elif table == "question":
                self._learn_tie(verb, row)
            else:
                self._learn_rare(table, verb, row)

    def _learn_rare(self, table: str, verb: str, row: dict[str, Any]) -> None:
        """Drop cached negative facts that are no longer true: that a key is unused, that there is no cooldown, or that
        a task has no message."""
        if table == "used_key":
            self._used_keys.pop(row["key"], None)
        elif table == "cooling":
            self._coolings = None
        elif table == "message" and verb == "add" and not row["reader"]:
            self._silent.discard(row["run"])
        elif table == "message":  # a result message may be for a task of another run
            self._silent.clear()

    def _learn_lease(self, verb: str, key: tuple[str, Unit], row: dict[str, Any]) -> None:
        if verb in ("add", "put"):
            self._leases[key] = lease_of([row[name] for name in Lease._fields])
        elif verb == "drop":
            self._leases.pop(key, None)  # closed for good: ids are never reused
        elif verb == "set":
            known = self._leases.pop(key, None)
            if known is not None:
                self._leases[key] = known._replace(state=row["state"])

    def _learn_hold(self, verb: str, hold: str, row: dict[str, Any]) -> None:
        if verb == "add":
            self._placed[hold] = Hold(**{name: row[name] for name in Hold._fields})
        else:
            self._placed.pop(hold, None)
            self._disputes.clear()

    def _learn_tie(self, verb: str, row: dict[str, Any]) -> None:
        """Update the cached count of a task's open holds and questions."""
        task = row.get("task")
        known = self._standings.get(task) if task is not None else None
        if known is not None and verb in _TIES:
            self._standings[cast("str", task)] = Standing(*known[:-1], known.ties + _TIES[verb])
        elif known is not None or verb == "put":
            self._standings.pop(cast("str", task), None)

    def _learn_task(self, event: Event, verb: str, task: str, row: dict[str, Any]) -> None:
        if self._same_requests:
            # Cached records may have changed, and this task may be one of them: keep only keys that are certainly
            # unaffected.
            own = row.get("dedup_key")
            self._same_requests = {key: known for key, known in self._same_requests.items() if not known and key != own}
        if verb == "add":
            purse = row["purse"]
            self._standings[task] = Standing(row["state"], row["fence"], row["failures"], row["asked_how"], purse)
            self._silent.add(task)
            if not row["parent"]:
                self._remember_run(RunFacts(task, first_members(event.agent, row["led_as"]), 1, 0, 0, 0))
            if row["state"] == "pending":
                self._keep(event)
        elif verb in ("end", "drop"):
            self._standings.pop(task, None)
            self._silent.discard(task)
            self._runs.pop(task, None)  # most runs end with their root; the others are read again
        elif verb == "fund":
            self._standings.pop(task, None)
        elif verb not in ("hand", "extend", "lose"):
            known = self._standings.pop(task, None)
            if known is not None:
                fence, failures = row.get("fence", known.fence), row.get("failures", known.failures)
                self._standings[task] = known._replace(state=row["state"], fence=fence, failures=failures)

    def learn_count(self, run: str, count: Count) -> None:
        """Add the counts of an event that was just written to the cached figures of a run."""
        known = self._runs.get(run)
        if known is not None and count is ONE_TASK:  # nearly always
            id_, members, tasks, *others = known
            self._runs[run] = RunFacts(id_, members, tasks + 1, *others)
        elif known is not None:
            members = known.members.union(count.members.split()) if count.members else known.members
            self._runs[run] = RunFacts(run, members, *map(add, known[2:], count[1:]))  # figures in the same order

    def _remember_run(self, facts: RunFacts) -> None:
        self._runs[facts.id] = facts
        if len(self._runs) > RUNS:
            del self._runs[next(iter(self._runs))]

    def _keep(self, event: Event) -> None:
        self._events[event.seq] = event
        if len(self._events) > EVENTS:
            del self._events[next(iter(self._events))]
