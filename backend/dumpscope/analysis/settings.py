"""How two dumps were taken differently: what no verdict can make up for, said before any verdict."""

from __future__ import annotations

from collections import Counter
from typing import Final

import numpy as np

from dumpscope.domain.context import Context
from dumpscope.domain.facts import Facts, Outcome
from dumpscope.domain.phrases import Phrase, phrase
from dumpscope.domain.records import Header, NodeKind, RankDump

KINDS: Final = 3
"""Kinds of calls that one side lacks throughout, from which that is no matter of the script but of what was dumped."""
NAMED: Final = 5


def describe(target: RankDump, golden: RankDump, context: Context, facts: Facts) -> list[Phrase]:
    """One phrase per difference in the way the two sides were dumped."""
    out = [*_headers(target.header, golden.header), *_calls(target, golden)]
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
