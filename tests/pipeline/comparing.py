"""Compare two real dumps in memory, as the command line does."""

from __future__ import annotations

from pathlib import Path

from dumpscope.domain.options import Options
from dumpscope.domain.result import Answer, Side, Unit
from dumpscope.pipeline.compare.conclusion import conclude
from dumpscope.pipeline.compare.unit import compare_rank
from dumpscope.pipeline.compare.unit_store import UnitStore
from dumpscope.readers import discover, read_rank

NOWHERE = Side(path="", framework="", task="", level="", steps=[], ranks=[])


def compare(
    target: Path, golden: Path, options: Options | None = None, folder: Path | None = None
) -> tuple[Answer, list[Unit]]:
    """folder: takes the tensors of passes that are put together, see `compare_rank`"""
    options = options or Options()
    rivals = {(ref.step, ref.rank or 0): ref for ref in discover(golden).ranks}
    units = []
    for ref in discover(target).ranks:
        place = ref.step, ref.rank or 0
        if place in rivals:
            sides = read_rank(ref), read_rank(rivals[place])
            units.append(compare_rank(*sides, step=place[0], rank=place[1], options=options, folder=folder))
    shelf = UnitStore(units)
    answer, _ = conclude(shelf, policy=options.policy, target=NOWHERE, golden=NOWHERE)
    return answer, list(shelf)
