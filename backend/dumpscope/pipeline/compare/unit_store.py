"""The units of one comparison: small ones stay in memory, large ones are on disk and loaded one at a time."""

from __future__ import annotations

import pickle
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import overload

from dumpscope.domain.facts import ItemOpinions, NodeOpinions
from dumpscope.domain.joined import JoinedUnit
from dumpscope.domain.records import Header
from dumpscope.domain.result import Unit
from dumpscope.errors import DumpscopeError, FullDiskError, full_disk
from dumpscope.pipeline.tasks.temporary_folder import TemporaryFolder
from dumpscope.texts import say


@dataclass(frozen=True, slots=True, kw_only=True)
class SpilledUnit:
    """A unit in a file, with its context: reading that is faster than gathering it again."""

    step: int
    rank: int
    target: Header
    golden: Header
    file: Path
    joined: JoinedUnit | None


def spill(unit: Unit, folder: Path) -> SpilledUnit:
    """Write a unit into the folder of a store. Raises DumpscopeError where the disk is full."""
    file = folder / f"step{unit.step}_rank{unit.rank}"
    try:
        with file.open("wb") as stream:  # over what a worker left that was killed
            pickle.dump(unit, stream, protocol=pickle.HIGHEST_PROTOCOL)
    except OSError as error:
        raise _disk_full(error, str(folder)) from error
    return SpilledUnit(
        step=unit.step,
        rank=unit.rank,
        target=unit.target.header,
        golden=unit.golden.header,
        file=file,
        joined=unit.joined,
    )


class UnitStore(Sequence[Unit]):
    """Units by step and rank. A spilled one is read again at every access, so that only one need be in memory.

    Files lie where temporary files do (TMPDIR) and are removed with the store.
    """

    def __init__(self, units: Iterable[Unit] = ()) -> None:
        self._entries: list[Unit | SpilledUnit] = []
        self._opinions: dict[int, tuple[ItemOpinions, NodeOpinions]] = {}
        for unit in units:
            self.put(unit)

    def folder(self) -> Path:
        """A new folder for `spill`. Raises DumpscopeError where none can be made."""
        try:
            temporary = TemporaryFolder()
        except OSError as error:
            raise _disk_full(error, tempfile.gettempdir()) from error
        weakref.finalize(self, temporary.close)
        return temporary.path

    def put(self, entry: Unit | SpilledUnit) -> None:
        """Add one; all are put before any is judged."""
        self._entries.append(entry)
        self._entries.sort(key=lambda one: (one.step, one.rank))

    def judge(self, place: int, judged: Unit) -> None:
        """Give the unit at this place the opinions of this one, which is the same but for them."""
        self._opinions[place] = judged.item_opinions, judged.node_opinions

    @property
    def places(self) -> list[tuple[int, int]]:
        """Step and rank of every unit."""
        return [(entry.step, entry.rank) for entry in self._entries]

    def headers(self, *, golden: bool) -> list[Header]:
        """Every unit's header of one side."""
        sides = [entry.golden if golden else entry.target for entry in self._entries]
        return [side if isinstance(side, Header) else side.header for side in sides]

    @property
    def joined(self) -> list[JoinedUnit]:
        """What was joined for the units."""
        return [entry.joined for entry in self._entries if entry.joined is not None]

    def __len__(self) -> int:
        return len(self._entries)

    @overload
    def __getitem__(self, place: int) -> Unit: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Unit]: ...
    def __getitem__(self, place: int | slice) -> Unit | Sequence[Unit]:
        if isinstance(place, slice):
            return [self[one] for one in range(len(self))[place]]
        place = range(len(self))[place]
        unit = self._entries[place]
        if isinstance(unit, SpilledUnit):
            with unit.file.open("rb") as stream:
                unit = pickle.load(stream)
            assert isinstance(unit, Unit)
        opinions = self._opinions.get(place)
        return unit if opinions is None else replace(unit, item_opinions=opinions[0], node_opinions=opinions[1])

    def __iter__(self) -> Iterator[Unit]:
        return (self[place] for place in range(len(self)))


def _disk_full(error: OSError, folder: str) -> DumpscopeError:
    kind = DumpscopeError if full_disk(error) is None else FullDiskError
    return kind(
        say("pipeline.no_room_results_wait", reason=error.strerror),
        hint=say("pipeline.let_tmpdir_name_folder_room_compare"),
        where=folder,
    )
