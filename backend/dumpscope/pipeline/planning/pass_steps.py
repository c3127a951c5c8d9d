"""Steps that are passes of one request: an engine records every pass of its model as a step of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dumpscope.domain.options import Options
from dumpscope.domain.records import RankDump, RankRef
from dumpscope.errors import UnreadableError
from dumpscope.parallel.passes.chain import chain_steps
from dumpscope.parallel.passes.split import find_passes, shapes_of
from dumpscope.pipeline.planning.joined_pairs import Load
from dumpscope.pipeline.planning.pass_relation import find_relation
from dumpscope.pipeline.planning.rank_pairs import RankPair


def with_passes(
    pairs: Sequence[RankPair], target: Sequence[RankRef], golden: Sequence[RankRef], options: Options, load: Load
) -> list[RankPair]:
    """The pairs, those of a rank as one pair with all steps where one side made in several steps what the other made in fewer."""
    if options.steps:
        return list(pairs)
    found: dict[int, RankPair | None] = {}
    out = []
    for pair in pairs:
        if pair.rank not in found:
            sides = [
                sorted((ref for ref in side if ref.number == own.number), key=lambda ref: ref.step)
                for side, own in ((target, pair.target), (golden, pair.golden))
            ]
            found[pair.rank] = _put_together(pair, sides[0], sides[1], load)
        whole = found[pair.rank]
        if whole is None:
            out.append(pair)
        elif whole not in out:
            out.append(whole)
    return out


def _put_together(pair: RankPair, target: Sequence[RankRef], golden: Sequence[RankRef], load: Load) -> RankPair | None:
    several = [ref for side in (target, golden) if len(side) > 1 for ref in side]
    if not several or not all(ref.traits.steps_are_passes for ref in several):
        return None
    try:
        if len(target) > 1 < len(golden) and _begin_alike(load("target", target[0]), load("golden", golden[0])):
            return None
        sides = (
            chain_steps([load("target", ref) for ref in target]),
            chain_steps([load("golden", ref) for ref in golden]),
        )
    except UnreadableError:
        return None
    if find_relation(*sides) is None:
        return None
    return replace(pair, target=target[0], golden=golden[0], following=(tuple(target[1:]), tuple(golden[1:])))


def _begin_alike(target: RankDump, golden: RankDump) -> bool:
    """Whether the first steps of both sides took as much: then each is compared with its namesake."""
    found = find_passes(target), find_passes(golden)
    if found[0] is None or found[1] is None:
        return True
    return shapes_of(target, found[0].made) == shapes_of(golden, found[1].made)
