"""The registry of dump formats: which there are, what they can, and what happens to a format that is not installed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from dumpscope import extensions
from dumpscope.domain.records import RankDump, RankRef, Traits
from dumpscope.errors import DumpscopeError, UnreadableError
from dumpscope.readers import discover, read_rank
from dumpscope.readers.formats import DumpFormat, Place, formats


@pytest.fixture
def others(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[object]]:
    """What other packages register; the formats are looked up anew before and after."""
    found: list[object] = []
    monkeypatch.setattr(extensions, "load", lambda group: tuple(found) if group == extensions.FORMATS else ())
    formats.cache_clear()
    yield found
    formats.cache_clear()


class Lines(DumpFormat):
    """One file `calls.lines` in a rank folder."""

    name = "lines"
    traits = Traits(all_arguments=False)

    def find_rank(self, place: Place) -> RankRef | None:
        path = Path(place.folder) / "calls.lines"
        return self.rank_at(place, str(path)) if path.is_file() else None

    def read_rank(self, ref: RankRef, *, follow_stored_path: bool) -> RankDump:
        raise NotImplementedError


def test_a_rank_stored_before_traits_were_has_those_of_its_format() -> None:
    for one in formats()[:3]:
        ref = RankRef(
            step=0, rank=None, label="", folder="f", dump_json="f/x", stack_json=None, construct_json=None,
            layout=one.name, traits=one.traits,
        )  # fmt: skip
        stored = json.loads(json.dumps(asdict(ref)))
        assert RankRef.from_json(stored) == ref
        del stored["traits"]
        assert RankRef.from_json(stored) == ref


def test_a_format_of_another_package_has_the_folders_of_steps_and_ranks(tmp_path: Path, others: list[object]) -> None:
    others.append(Lines())
    for step in (0, 3):
        for rank in (0, 1):
            folder = tmp_path / f"step{step}" / f"rank{rank}"
            folder.mkdir(parents=True)
            (folder / "calls.lines").touch()
    found = discover(tmp_path)
    assert [(ref.step, ref.rank, ref.layout) for ref in found.ranks] == [
        (step, rank, "lines") for step in (0, 3) for rank in (0, 1)
    ]
    assert discover(tmp_path / "step3" / "rank1").ranks[0].traits == Traits(all_arguments=False)


def test_a_rank_whose_format_is_not_installed_names_it(tmp_path: Path, others: list[object]) -> None:
    ref = RankRef(
        step=0,
        rank=0,
        label="rank0",
        folder=str(tmp_path),
        dump_json="",
        stack_json=None,
        construct_json=None,
        layout="lines",
    )
    with pytest.raises(UnreadableError, match="'lines', which is not installed"):
        read_rank(ref)
    others.append(Lines())
    formats.cache_clear()
    with pytest.raises(NotImplementedError):
        read_rank(ref)
    assert replace(ref, layout="msprobe").traits == Traits()


@pytest.mark.parametrize("wrong", ["no format", "a name twice"])
def test_what_is_no_format_or_takes_a_known_name_is_refused(others: list[object], wrong: str) -> None:
    class Taken(Lines):
        name = "ptdbg"

    others.append(Taken() if wrong == "a name twice" else object())
    with pytest.raises(
        DumpscopeError, match="DumpFormat" if wrong == "no format" else "two dump formats named 'ptdbg'"
    ):
        formats()
