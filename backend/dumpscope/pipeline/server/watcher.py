"""Looks at watched folders, has a job read what is new in them, and has pairs compared that are whole on both sides.

One thread of one server looks, whichever holds the role "watch" at the database; the work itself is jobs in the queue. A look
lists the folder and at most `MOST` ranks in it; a file system that does not answer holds up this thread and nothing else.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from dumpscope.domain.job import Job
from dumpscope.domain.watching import Condition, Place, Places, Seen, next_wait
from dumpscope.errors import DumpscopeError, NotFoundError, UnreadableError
from dumpscope.index.comparisons.catalogue import (
    change_comparison,
    create_comparison,
    edit_options,
    get_comparison,
)
from dumpscope.index.dumps.catalogue import DumpRow, change_dump, get_dump
from dumpscope.index.dumps.watches import (
    WatchRow,
    change_watch,
    digest_ranks,
    list_watches,
    newest_rank,
    stored_stamps,
)
from dumpscope.index.store.database import Database
from dumpscope.index.store.jobs import JobTable
from dumpscope.pipeline.server.rounds import Rounds
from dumpscope.readers.discover import dump_root
from dumpscope.readers.glance import count_calls, list_places, list_steps, look_at
from dumpscope.texts import said_of, say
from dumpscope_format.paths import step_number

MOST: Final = 256
"""Ranks of a dump that one look goes into."""
LISTED: Final = 16
"""Folders of old steps that one look lists again, besides those in which something happens."""
WATCHES: Final = 1000
"""Watches at a time."""
GROWTH: Final = 1.25
"""What a journal must have grown by before it is read again: so all reading of it together takes at most five times the last."""

Submit = Callable[[str, str, dict[str, Any]], Job]

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Memory:
    """What is kept of a watch between looks. Nothing of it must survive the process: a new one learns it in a settle time.

    read: folder -> stamp that it has in the database, or that a job was asked to read; journals: folder -> (calls, offset)
    grown: calls of the growing step when it was read last, at the time `live`
    compared: partner, steps and newest ranks for which it is known that nothing is left to compare
    """

    places: Places
    due: float = 0.0
    wait: float = 0.0
    root: str | None = None
    steps: dict[int, str] | None = None
    turn: int = 0
    read: dict[str, str | None] | None = None
    journals: dict[str, tuple[int, int]] = field(default_factory=dict)
    grown: tuple[int | None, int] = (None, 0)
    live: float = 0.0
    compared: tuple[Any, ...] = ()


class Watcher(Rounds):
    """roots: no folder outside them is looked at; settle: see domain.watching; submit: queues a job of the runner."""

    def __init__(self, database: Database, submit: Submit, *, roots: Sequence[Path], settle: float) -> None:
        super().__init__("watcher", settle)
        self._database = database
        self._submit = submit
        self._jobs = JobTable(database)
        self._roots = [os.path.realpath(root) for root in roots]
        self._settle = settle
        self._memory: dict[str, _Memory] = {}

    def look(self, *, asked: bool = False) -> float:
        """Look at every watch that is due, or at all where one was made or changed. Returns seconds to the next one."""
        if not self._database.lead("watch"):
            self._memory.clear()
            return self._settle
        rows = [row for _, row in list_watches(self._database, limit=WATCHES)]
        self._memory = {row.id: self._memory.get(row.id) or _Memory(Places(self._settle)) for row in rows}
        for row in rows:
            memory = self._memory[row.id]
            now = time.monotonic()
            if now < memory.due and not asked:
                continue
            restless = True
            try:
                restless = self._look(row, memory, now)
            except NotFoundError:  # deleted meanwhile
                pass
            except OSError as error:
                log.warning("the watched folder %s cannot be looked at: %s", row.path, error)
            memory.wait = next_wait(memory.wait, self._settle, restless=restless)
            memory.due = time.monotonic() + memory.wait
        ahead = [memory.due for memory in self._memory.values()]
        return max(0.02, min(ahead, default=time.monotonic() + 3 * self._settle) - time.monotonic())

    # -- one look ------------------------------------------------------------------------------------------------------

    def _look(self, row: WatchRow, memory: _Memory, now: float) -> bool:
        """Returns whether something goes on, so that the next look should be soon."""
        dump = get_dump(self._database, row.dump)
        seen = self._see(row, memory, now)
        if seen != row.seen:
            change_watch(self._database, row.id, seen=seen.to_json())
        if seen.condition in ("gone", "outside", "unreadable", "waiting"):
            return seen.condition == "waiting" and seen != row.seen
        busy = self._unfinished(dump)
        if not busy:
            busy = self._read_changes(dump, memory, seen, now)
        if not busy and row.partner is not None and not memory.places.is_examining():
            busy = self._compare(row, memory, dump, seen)
        return busy or seen != row.seen or memory.places.is_restless(now)

    def _see(self, row: WatchRow, memory: _Memory, now: float) -> Seen:
        before, clock = row.seen, time.time()
        real = os.path.realpath(row.path)
        if not any(real == root or real.startswith(root.rstrip(os.sep) + os.sep) for root in self._roots):
            return before.then("outside", clock)
        if not os.path.isdir(real):
            memory.root, memory.places = None, Places(self._settle)
            return before.then("gone", clock)
        try:
            if memory.root is None or not os.path.isdir(memory.root):
                memory.root = dump_root(real)
            if memory.root is None:
                return before.then("waiting", clock)
            self._list(memory, now)
        except UnreadableError as error:
            why = str(error)
            return before.then("unreadable", clock, why=why, why_said=said_of(why))
        for place in memory.places.due(MOST):
            sight = look_at(place.folder, memory.places.sight(place.folder))
            memory.places.see(now, place.folder, sight)
            if sight is not None and sight.state == "journal":
                calls, end = memory.journals.get(place.folder, (0, 0))
                more, end = count_calls(place.folder, end)
                memory.journals[place.folder] = (calls + more, end)
            else:
                memory.journals.pop(place.folder, None)
        return self._sum_up(before, memory, now, clock)

    def _list(self, memory: _Memory, now: float) -> None:
        """List the folders of the steps in which something may happen, and of some of the others, in turn."""
        assert memory.root is not None
        memory.steps = list_steps(memory.root)
        places = memory.places
        if memory.steps is None:
            step = _step_of(memory.root)
            places.find(now, {place.step for place in places.places} | {step}, list_places(memory.root, step))
            return
        whole = places.whole_steps(now)
        order = sorted(memory.steps)
        old = [step for step in order[:-2] if step in whole]
        again = {old[(memory.turn + number) % len(old)] for number in range(min(LISTED, len(old)))} if old else set()
        memory.turn += LISTED
        listed = {step for step in order if step not in old} | again
        gone = {place.step for place in places.places} - set(order)
        places.find(now, listed | gone, [one for step in listed for one in list_places(memory.steps[step], step)])

    def _sum_up(self, before: Seen, memory: _Memory, now: float, clock: float) -> Seen:
        places = memory.places
        newest = places.newest
        if newest is None:
            return before.then("waiting", clock)
        whole = sorted(places.whole_steps(now))
        ranks = [place for place in places.places if place.step == newest]
        sights = [sight for place in ranks if (sight := places.sight(place.folder)) is not None]
        condition: Condition
        if newest not in whole:
            if not places.has_changed(newest):  # a server that has just started knows no more than the one before
                kept = before.condition in ("still", "ended") and before.step == newest
                return before if kept else before.then("looking", clock, step=newest, calls=None, whole=whole)
            condition = "growing"
        else:
            condition = "ended" if all(sight.state == "closed" for sight in sights) else "still"
        counted = [memory.journals[place.folder][0] for place in ranks if place.folder in memory.journals]
        calls = sum(counted) if counted else None
        return before.then(condition, clock, step=newest, calls=calls, whole=whole)

    # -- what follows from it ------------------------------------------------------------------------------------------

    def _unfinished(self, dump: DumpRow) -> bool:
        return any(self._jobs.of(kind, dump.id) for kind in ("update", "ingest"))

    def _read_changes(self, dump: DumpRow, memory: _Memory, seen: Seen, now: float) -> bool:
        """Queue a job that reads what has another stamp than what is stored; returns whether it did."""
        if memory.read is None:
            memory.read = dict(stored_stamps(self._database, dump.id))
        whole = set(seen.whole)
        changed: list[Place] = []
        live: list[Place] = []
        for place in memory.places.places:
            sight = memory.places.sight(place.folder)
            if sight is None or memory.read.get(place.folder) == sight.stamp:
                continue
            if place.step in whole:
                changed.append(place)
            elif sight.state == "journal":
                live.append(place)
        growing = bool(live) and self._is_worth_reading(memory, live, now)
        chosen = changed + (live if growing else [])
        if not chosen:
            return False
        for place in chosen:
            sight = memory.places.sight(place.folder)
            memory.read[place.folder] = None if sight is None else sight.stamp
        steps = None if memory.steps is None else sorted({place.step for place in chosen})
        folders = sorted(place.folder for place in chosen)
        payload = {"steps": steps, "folders": folders, "growing": bool(live)}
        job = self._submit("update", dump.id, payload)
        if dump.status != "ready":
            change_dump(self._database, dump.id, status="pending", error=None, job=job.id)
        return True

    def _is_worth_reading(self, memory: _Memory, live: Sequence[Place], now: float) -> bool:
        """A journal is read again after a settle time, and when it has grown by a quarter."""
        step = max(place.step for place in live)
        calls = sum(memory.journals.get(place.folder, (0, 0))[0] for place in live)
        before, known = memory.grown
        if not calls or (before == step and (calls < GROWTH * known or now - memory.live < self._settle)):
            return False
        memory.grown, memory.live = (step, calls), now
        return True

    def _compare(self, row: WatchRow, memory: _Memory, dump: DumpRow, seen: Seen) -> bool:
        """Compare the steps that are whole on both sides, unless that was done; returns whether a comparison is at work."""
        assert row.partner is not None
        other = get_dump(self._database, row.partner)
        if dump.status != "ready" or other.status != "ready" or self._unfinished(other):
            return False
        theirs = set(other.steps) if other.watch is None else set(other.watch.seen.whole) & set(other.steps)
        steps = sorted(set(seen.whole) & set(dump.steps) & theirs)
        if not steps:
            return False
        if row.comparison is not None and get_comparison(self._database, row.comparison).status in (
            "pending",
            "running",
        ):
            return True
        at = row.partner, steps, newest_rank(self._database, dump.id), newest_rank(self._database, other.id)
        if memory.compared == at:
            return False
        memory.compared = at
        digest = digest_ranks(self._database, [dump.id, other.id], steps)
        if digest == row.compared:
            return False
        try:
            self._start(row, dump, other, steps)
        except DumpscopeError as error:  # the comparison is gone, say; what is new later is tried again
            log.warning("the watch of %s could not compare: %s", row.path, error)
        change_watch(self._database, row.id, compared=digest)
        return True

    def _start(self, row: WatchRow, dump: DumpRow, other: DumpRow, steps: list[int]) -> None:
        database, comparison = self._database, row.comparison
        options = row.options.with_steps(steps)
        if comparison is None:
            target, golden = (dump, other) if row.side == "target" else (other, dump)
            name = str(say("report.title", target=target.name, golden=golden.name))
            comparison = create_comparison(
                database, name=name, target=target.id, golden=golden.id, options=options, watched=True
            )
            change_watch(database, row.id, comparison=comparison)
        else:
            edit_options(database, comparison, lambda stored: stored.with_steps(steps))
            change_comparison(database, comparison, status="pending", error=None)
        job = self._submit("compare", comparison, {})
        change_comparison(database, comparison, job=job.id)


def _step_of(root: str) -> int:
    """Step of ranks that lie in no folder of a step below the root, as discovery numbers it."""
    names = os.path.basename(root), os.path.basename(os.path.dirname(root))
    return next((step for name in names if (step := step_number(name)) is not None), 0)
