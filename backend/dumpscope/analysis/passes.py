"""What an answer says of a model's passes that were put together: how, what is lost by it, and in which pass a cause lies."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, Final

import numpy as np

from dumpscope.domain.context import Context
from dumpscope.domain.facts import Facts, Outcome
from dumpscope.domain.records import Bool, Kind, RankDump
from dumpscope.texts import Phrase, phrase
from dumpscope_format import naming

_MARK: Final = '"passes":{'


@dataclass(frozen=True, slots=True, kw_only=True)
class PassCall:
    """The call of one pass. number: of the pass, from 1, of `count`"""

    number: int
    count: int
    node: str


def find_pass(dump: RankDump, item: int, index: tuple[int, ...] | None) -> PassCall | None:
    """The pass that made the element at `index` of an item that was put together of passes; None where no pass alone made it."""
    said = told_of_passes(dump, item)
    if said is None or index is None or not {"dimension", "sizes", "calls"} <= said.keys():
        return None
    sizes, order = said["sizes"], said.get("order")
    place = index[said["dimension"]]
    if order is not None:
        each = said["times"]
        place = order[place // each] * each + place % each
    number = next((at for at, end in enumerate(accumulate(sizes)) if place < end), len(sizes) - 1)
    name = naming.parse(dump.nodes.names[dump.items.node[item]])
    call = naming.build(replace(name, index=said["calls"][number]))
    return PassCall(number=number + 1, count=len(sizes), node=call)


def told_of_passes(dump: RankDump, item: int) -> dict[str, Any] | None:
    """How an item was put together of passes; None where it was not."""
    code = int(dump.items.value[item]) if item >= 0 else -1
    text = dump.items.values[code] if code >= 0 else ""
    if dump.ref.passes is None or _MARK not in text:
        return None
    found: dict[str, Any] = json.loads(text)["passes"]
    return found


def describe_passes(target: RankDump, golden: RankDump, context: Context, facts: Facts) -> list[Phrase]:
    """The passes that were put together, and what that leaves without a comparison. Nothing where there were none."""
    sides = {"target": target, "golden": golden}
    made = {word: dump.ref.passes for word, dump in sides.items() if dump.ref.passes is not None}
    if not made:
        return []
    word = next(iter(made.values())).word
    totals = {side: sum(one.sizes) for side, one in made.items()}
    common = next(iter(totals.values()))
    counts = {side: [phrase("passes.count", count=len(made[side].sizes) if side in made else 1)] for side in sides}
    out = [phrase(f"passes.{word}", total=common, **counts)]
    out += [phrase("passes.anew", side=[phrase(f"side.{side}")]) for side, one in made.items() if one.anew]
    few = [
        one.compared for one in made.values() if 0 <= one.compared < max(map(sum, (one.sizes for one in made.values())))
    ]
    if few:
        out.append(phrase("passes.tokens", count=few[0], **{side: sum(one.sizes) for side, one in made.items()}))
    for side, one in made.items():
        if one.gradients != 1.0:
            other = "golden" if side == "target" else "target"
            times = f"{1 / one.gradients:g}"
            out.append(
                phrase("passes.scaled", side=[phrase(f"side.{side}")], other=[phrase(f"side.{other}")], times=times)
            )
    if any(one.weighted for one in made.values()):
        return [*out, phrase("passes.weighted")]
    mixed = next((one.mixed for one in made.values() if one.mixed), "")
    if mixed:
        out.append(phrase("passes.mixed", call=mixed))
    lost = (facts.outcome == Outcome.NO_DATA) & context.both & (context.kind == Kind.TENSOR)
    lost &= _put_together(target, context.target) | _put_together(golden, context.golden)
    if lost.any():
        stored = target.header.data_dir and golden.header.data_dir
        out.append(phrase(f"passes.{'apart' if stored else 'unseen'}", count=int(lost.sum())))
    return out


def _put_together(dump: RankDump, items: np.ndarray[Any, np.dtype[np.int32]]) -> Bool:
    told = np.array([_MARK in text for text in dump.items.values] + [False])
    if dump.ref.passes is None or not len(dump.items):
        return np.zeros(len(items), bool)
    found: Bool = told[dump.items.value[items]] & (items >= 0)
    return found
