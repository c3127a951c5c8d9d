"""Measure how far target and golden are from an absolute reference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dumpscope.domain.context import Context, gather
from dumpscope.domain.distances import Distances
from dumpscope.domain.facts import ItemPairs, NodePairs
from dumpscope.domain.options import Options
from dumpscope.domain.records import Float64, Int32, RankDump, State
from dumpscope.match import match
from dumpscope.pipeline.compare.measure import Cancelled, Progress, measure, mode_of
from dumpscope.verdict.score import MAX, MIN, NORM, distance


def measure_distances(
    target: RankDump,
    golden: RankDump,
    reference: RankDump,
    pairs: NodePairs,
    items: ItemPairs,
    options: Options,
    *,
    threads: int,
    progress: Progress,
    cancelled: Cancelled,
) -> Distances:
    """Distances of both sides of every item pair. The golden is matched with the reference by itself; a pair of target and golden
    shares the reference's item of its golden. A tensor of the reference that cannot be read leaves its pair to the statistics."""
    matched = match(golden, reference, Options(fuzzy=options.fuzzy, fusion=options.fusion))
    nodes = _through(pairs.golden, matched.pairs.golden, matched.pairs.target, len(golden.nodes))
    rivals = _through(items.golden, matched.items.golden, matched.items.target, len(golden.items))
    rivals = np.where((items.target >= 0) & (items.golden >= 0), rivals, -1).astype(np.int32)
    found = []
    for number, (side, mine, own) in enumerate(
        ((target, pairs.target, items.target), (golden, pairs.golden, items.golden))
    ):
        against = replace(pairs, target=mine, golden=nodes)
        of_items = ItemPairs(pair=items.pair, target=own, golden=rivals)
        found.append(
            _distances(
                side,
                reference,
                against,
                of_items,
                options,
                threads,
                lambda done, text, number=number: progress((number + done) / 2, text),  # type: ignore[misc]
                cancelled,
            )
        )
    return Distances(target=found[0], golden=found[1])


def _through(wanted: Int32, partner: Int32, known: Int32, size: int) -> Int32:
    """For each of `wanted` the partner of the same number in `known`, -1 where there is none."""
    table = np.full(size + 1, -1, np.int32)  # the last place is that of -1
    table[known[known >= 0]] = partner[known >= 0]
    found: Int32 = table[wanted]
    return found


def _distances(
    side: RankDump,
    reference: RankDump,
    pairs: NodePairs,
    items: ItemPairs,
    options: Options,
    threads: int,
    progress: Progress,
    cancelled: Cancelled,
) -> Float64:
    context = gather(side, reference, pairs, items)
    mode = mode_of(side, reference)
    if mode == "tensor" and not options.tensors:
        mode = "statistics"
    facts = measure(side, reference, context, mode, threads=threads, progress=progress, cancelled=cancelled)
    one, never = np.ones(len(context)), np.full(len(context), np.inf)
    found = np.column_stack([distance(context, facts, one, never), distance(context, facts, never, one)])
    found *= _against_reference(context)
    found[(items.target < 0) | (items.golden < 0)] = np.nan
    return found


def _against_reference(context: Context) -> Float64:
    """Factors, shape (n, 2), that turn distances by the larger side's size into distances by the reference's: two sides that are
    both far larger than it would else look alike. 1 where a size is not known."""
    sizes = []
    for stats, states in ((context.t_stats, context.t_state), (context.g_stats, context.g_state)):
        known = np.where(states == State.FINITE, np.abs(stats), np.nan)
        sizes.append(np.column_stack([known[:, NORM], np.fmax(known[:, MAX], known[:, MIN])]))
    with np.errstate(all="ignore"):
        larger = sizes[0] / sizes[1]
    return np.where(larger > 1, larger, 1.0)
