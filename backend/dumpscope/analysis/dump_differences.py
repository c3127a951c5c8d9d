"""How two dumps were taken differently: what no verdict can make up for, said before any verdict."""

from __future__ import annotations

from collections import Counter
from typing import Final

import numpy as np

from dumpscope.analysis.run_differences import differences
from dumpscope.domain.context import Context
from dumpscope.domain.facts import Facts, Outcome
from dumpscope.domain.records import Direction, Header, NodeKind, RankDump, Role
from dumpscope.texts import Phrase, phrase

KINDS: Final = 3
"""Kinds of calls that one side lacks throughout, from which that is no matter of the script but of what was dumped."""
NAMED: Final = 5
_KINDS_TOLD: Final = ("setting.risk_level", "setting.selection")
"""What explains kinds of calls that one side lacks."""


def describe(target: RankDump, golden: RankDump, context: Context, facts: Facts) -> list[Phrase]:
    """One phrase per difference in the way the two sides were dumped."""
    told = differences(target.header.run, golden.header.run)
    out = [*_headers(target.header, golden.header), *told]
    if not any(one["id"] in _KINDS_TOLD for one in told):
        out += _calls(target, golden)
    if target.header.task == golden.header.task and not any(one["id"] == "setting.data_mode" for one in told):
        out += _parts(target, golden)
    dtypes = _dtypes(context, facts)
    return [*out, dtypes] if dtypes else out


def _headers(target: Header, golden: Header) -> list[Phrase]:
    out = []
    for word, t, g in (
        ("framework", target.framework, golden.framework),
        ("task", target.task, golden.task),
        ("level", target.level, golden.level),
        ("summary", target.summary, golden.summary),
    ):
        if t != g:
            out.append(phrase(f"setting.{word}", target=t or "?", golden=g or "?"))
    return out


def _calls(target: RankDump, golden: RankDump) -> list[Phrase]:
    """Said when one side knows all kinds of calls that the other does and several more: another risk level, list or scope."""
    sides = [_kinds(dump) for dump in (target, golden)]
    more = {"target": sorted(sides[0] - sides[1]), "golden": sorted(sides[1] - sides[0])}
    if not all(sides) or all(more.values()):
        return []
    return [
        phrase("setting.calls", side=[phrase(f"side.{side}")], count=len(names), names=", ".join(names[:NAMED]))
        for side, names in more.items()
        if len(names) >= KINDS
    ]


def _kinds(dump: RankDump) -> set[str]:
    codes = np.unique(dump.nodes.label[(dump.nodes.kind == NodeKind.API) & (dump.nodes.label >= 0)])
    return {dump.nodes.labels[code] for code in codes.tolist()}


def _parts(target: RankDump, golden: RankDump) -> list[Phrase]:
    """Said per side that holds no forward or backward calls at all, or no inputs or outputs, where the other one does."""
    held = [_held(dump) for dump in (target, golden)]
    if not all(held):
        return []
    missing = {"target": held[1] - held[0], "golden": held[0] - held[1]}
    return [
        phrase("setting.parts", side=[phrase(f"side.{side}")], parts=[phrase(f"part.{part}") for part in sorted(parts)])
        for side, parts in missing.items()
        if parts
    ]


def _held(dump: RankDump) -> set[str]:
    """Which of the parts that data_mode chooses from are there; those of a side are asked for where it holds items."""
    calls = np.isin(dump.nodes.kind, (NodeKind.API, NodeKind.MODULE))
    found = {
        word
        for word, code in (("forward", Direction.FORWARD), ("backward", Direction.BACKWARD))
        if (dump.nodes.direction[calls] == code).any()
    }
    roles = set(np.unique(dump.items.role[calls[dump.items.node]]).tolist())
    if roles & {Role.INPUT, Role.KWARG}:
        found.add("input")
    if Role.OUTPUT in roles:
        found.add("output")
    return found


def _dtypes(context: Context, facts: Facts) -> Phrase | None:
    """Said when dtypes differ in more than a quarter of the tensors: then precision differs everywhere."""
    tensors = np.flatnonzero((facts.outcome == Outcome.COMPARED) & (context.t_dtype >= 0) & (context.g_dtype >= 0))
    differing = tensors[facts.dtype_differs[tensors] == 1]
    if not len(tensors) or len(differing) <= 0.25 * len(tensors):
        return None
    pairs = Counter(zip(context.t_dtype[differing].tolist(), context.g_dtype[differing].tolist(), strict=True))
    (t, g), _ = pairs.most_common(1)[0]
    return phrase(
        "setting.dtypes",
        count=len(differing),
        total=len(tensors),
        target=context.dtypes[t],
        golden=context.dtypes[g],
    )
