"""How two dumps were taken differently: what no verdict can make up for, said before any verdict."""

from __future__ import annotations

from collections import Counter

import numpy as np

from dumpscope.domain.context import Context
from dumpscope.domain.facts import Facts, Outcome
from dumpscope.domain.phrases import Phrase, phrase
from dumpscope.domain.records import Header


def describe(target: Header, golden: Header, context: Context, facts: Facts) -> list[Phrase]:
    """One phrase per difference in the way the two sides were dumped."""
    out = []
    for word, t, g in (
        ("framework", target.framework, golden.framework),
        ("task", target.task, golden.task),
        ("level", target.level, golden.level),
        ("summary", target.summary, golden.summary),
    ):
        if t != g:
            out.append(phrase(f"setting.{word}", target=t or "?", golden=g or "?"))
    dtypes = _dtypes(context, facts)
    return [*out, dtypes] if dtypes else out


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
