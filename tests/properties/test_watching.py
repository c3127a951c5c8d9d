"""A rank is whole when it has not changed for long enough between our own looks, whatever its files' clock says."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hypothesis import given, strategies as st

from dumpscope.domain.watching import PATIENCE, Place, Places, Seen, Sight, State, next_wait
from dumpscope_format.journal import Writer, count_nodes

SETTLE = 10.0
STATES: list[State] = ["closed", "written", "journal", "cut"]


@dataclass(frozen=True)
class Event:
    """Something that happens to one rank of one step, `after` seconds behind the event before; then a look at everything."""

    after: float
    step: int
    rank: int
    state: State


EVENTS = st.lists(
    st.builds(
        Event,
        after=st.floats(0.1, 40.0),
        step=st.integers(0, 2),
        rank=st.integers(0, 2),
        state=st.sampled_from(STATES),
    ),
    min_size=1,
    max_size=12,
)
LOOKS = st.lists(st.floats(0.5, 30.0), max_size=12)


class Folder:
    """A dump on disk as looks see it, and when each rank really changed."""

    def __init__(self, places: Places, clock: str = "") -> None:
        self.places = places
        self.sights: dict[Place, Sight] = {}
        self.changed: dict[Place, float] = {}
        self.found: dict[int, float] = {}
        self.now = 0.0
        self._clock = clock
        self._writes = 0

    def write(self, event: Event) -> None:
        self._writes += 1
        place = Place(event.step, f"rank{event.rank}", f"step{event.step}/rank{event.rank}")
        if place not in self.sights:
            self.found[event.step] = self.now
        self.sights[place] = Sight(f"{self._clock}{self._writes}", event.state)
        self.changed[place] = self.now

    def look(self) -> set[int]:
        self.places.find(self.now, {place.step for place in self.sights}, self.sights)
        for place in self.places.due(100):
            self.places.see(self.now, place.folder, self.sights[place])
        return self.places.whole_steps(self.now)


@given(EVENTS, LOOKS)
def test_a_step_is_whole_only_after_all_its_ranks_were_quiet(events: list[Event], looks: list[float]) -> None:
    folder = Folder(Places(SETTLE))
    for event in events:
        folder.now += event.after
        folder.write(event)
        for step in folder.look():
            assert_quiet(folder, step)
    for wait in looks:
        folder.now += wait
        for step in folder.look():
            assert_quiet(folder, step)


def assert_quiet(folder: Folder, step: int) -> None:
    assert folder.now - folder.found[step] >= SETTLE
    for place, sight in folder.sights.items():
        if place.step == step:
            assert folder.now - folder.changed[place] >= PATIENCE[sight.state] * SETTLE


@given(EVENTS)
def test_every_step_becomes_whole_when_nothing_changes_any_more(events: list[Event]) -> None:
    folder = Folder(Places(SETTLE))
    for event in events:
        folder.now += event.after
        folder.write(event)
        folder.look()
    for _ in range(2):
        folder.now += max(PATIENCE.values()) * SETTLE
        whole = folder.look()
    assert whole == {event.step for event in events}
    folder.now += SETTLE
    assert not folder.places.is_restless(folder.now)


@given(EVENTS, LOOKS)
def test_a_whole_step_stays_whole_while_nothing_changes(events: list[Event], looks: list[float]) -> None:
    folder = Folder(Places(SETTLE))
    for event in events:
        folder.now += event.after
        folder.write(event)
        folder.look()
    whole = folder.look()
    for wait in looks:
        folder.now += wait
        assert whole <= (whole := folder.look())


@given(EVENTS, st.text(max_size=3))
def test_the_clock_of_the_file_system_does_not_matter(events: list[Event], clock: str) -> None:
    one, other = Folder(Places(SETTLE)), Folder(Places(SETTLE), clock)
    for event in events:
        for folder in (one, other):
            folder.now += event.after
            folder.write(event)
        assert one.look() == other.look()


@given(EVENTS, st.integers(1, 3))
def test_no_look_goes_into_more_ranks_than_it_may_and_none_is_forgotten(events: list[Event], most: int) -> None:
    folder = Folder(Places(SETTLE))
    for event in events:
        folder.write(event)
    folder.places.find(0.0, {event.step for event in events}, folder.sights)
    seen: set[str] = set()
    for number in range(len(folder.sights)):
        due = folder.places.due(most)
        assert len(due) <= most
        for place in due:
            seen.add(place.folder)
            folder.places.see(float(number), place.folder, folder.sights[place])
    assert seen == {place.folder for place in folder.sights}


@given(st.floats(0.1, 100.0), st.lists(st.booleans(), max_size=20))
def test_looks_come_seldom_while_nothing_happens_and_often_when_something_does(
    settle: float, restless: list[bool]
) -> None:
    wait = 0.0
    for one in restless:
        before, wait = wait, next_wait(wait, settle, restless=one)
        assert settle / 5 <= wait <= settle * 3
        assert wait == settle / 5 if one else wait >= before


@given(st.sampled_from(["growing", "still", "gone"]), st.sampled_from(["growing", "still", "gone"]), st.floats(1, 1e9))
def test_a_condition_keeps_the_time_at_which_it_began(first: str, then: str, now: float) -> None:
    seen = Seen().then(first, 0.5)  # type: ignore[arg-type]
    after = seen.then(then, now)  # type: ignore[arg-type]
    assert after.since == (0.5 if first == then else now)
    assert Seen.from_json(after.to_json()) == after


@given(st.lists(st.integers(0, 20), max_size=6))
def test_calls_of_a_journal_are_counted_from_where_the_last_count_ended(
    tmp_path_factory: object, parts: list[int]
) -> None:
    folder = Path(tmp_path_factory.mktemp("journal"))  # type: ignore[attr-defined]
    journal = Writer(folder, {"task": "statistics"})
    total, end, written = 0, 0, 0
    for part in parts:
        for _ in range(part):
            journal.node(f"Functional.relu.{written}.forward", {"output": []}, stack=("a", "b"), linked=True)
            written += 1
        more, end = count_nodes(journal.path, end)
        total += more
        assert total == written
    assert count_nodes(journal.path) == (written, journal.contents.end)
    with open(journal.path, "ab") as torn:
        torn.write(b"N\x20\x00\x00")
    assert count_nodes(journal.path) == (written, journal.contents.end)
    journal.close(remove=True)
    assert count_nodes(journal.path) == (0, 0)
