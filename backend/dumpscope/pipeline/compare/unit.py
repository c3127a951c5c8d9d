"""Two ranks in, one unit out. No database here: the CLI and the server share this."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from dumpscope.analysis.reference import apply_reference
from dumpscope.analysis.setting_differences import have_other_kernels
from dumpscope.analysis.unit.folded import excuse_folded
from dumpscope.analysis.unit.gather_columns import node_verdicts
from dumpscope.analysis.unit.no_effect import excuse_beside_none
from dumpscope.analysis.unit.rounding_only import excuse_rounding
from dumpscope.domain.context import Context, gather
from dumpscope.domain.facts import Facts, ItemPairs, Method, NodeOpinions, Outcome
from dumpscope.domain.options import Options
from dumpscope.domain.records import Bool, Direction, Kind, NodeKind, RankDump, item_name
from dumpscope.domain.result import MeasuredUnit, Unit
from dumpscope.errors import Problem
from dumpscope.match import match
from dumpscope.pipeline.compare.damage import is_damage
from dumpscope.pipeline.compare.join_passes import with_joined_passes
from dumpscope.pipeline.compare.measure import Cancelled, Progress, measure, mode_of, relate, tell_other_words
from dumpscope.pipeline.compare.provisional import first_origin, with_early, worth_telling
from dumpscope.pipeline.compare.reference_distances import measure_distances
from dumpscope.texts import say
from dumpscope.verdict import score
from dumpscope.verdict.judge import judge
from dumpscope.verdict.policy import load_policy


def compare_rank(
    target: RankDump,
    golden: RankDump,
    *,
    step: int,
    rank: int,
    options: Options,
    reference: RankDump | None = None,
    folder: Path | None = None,
    threads: int = 2,
    progress: Progress = lambda _done, _message: None,
    cancelled: Cancelled = lambda: False,
) -> Unit:
    """Match, measure and judge one rank of one step. Classes are preliminary until a `Conclusion` has seen all units.

    reference: the same rank of an absolute reference
    folder: takes tensors of passes that are put together; None: these are compared by their statistics
    """
    measured = measure_rank(
        target, golden, step=step, rank=rank, options=options, reference=reference, folder=folder, threads=threads,
        progress=progress, cancelled=cancelled,
    )  # fmt: skip
    return judge_unit(measured, options.policy)


def measure_rank(
    target: RankDump,
    golden: RankDump,
    *,
    step: int,
    rank: int,
    options: Options,
    reference: RankDump | None = None,
    folder: Path | None = None,
    threads: int = 2,
    progress: Progress = lambda _done, _message: None,
    cancelled: Cancelled = lambda: False,
) -> MeasuredUnit:
    """Match and measure one rank of one step, see `compare_rank`."""
    (target, golden), arguments = with_joined_passes(target, golden, options, folder)
    matched = match(target, golden, options)
    context = gather(target, golden, matched.pairs, matched.items)

    def measured(mode: str, facts: Facts, problems: list[Problem]) -> MeasuredUnit:
        return MeasuredUnit(
            step=step, rank=rank, target=target, golden=golden, mode=mode, pairs=matched.pairs, items=matched.items,
            tree=matched.tree, context=context, facts=facts, problems=problems,
            reference=None if reference is None else reference.header,
        )  # fmt: skip

    mode = mode_of(target, golden) if options.tensors else _without_tensors(target, golden)
    share = 1 if reference is None else 1 / 3
    early: str | None = None
    if mode == "tensor" and worth_telling(context):
        statistics = measure(
            target, golden, context, "statistics", threads=1, progress=lambda _done, _text: None,
            cancelled=lambda: False,
        )  # fmt: skip
        tell_other_words(target, golden, matched.pairs, context, statistics)
        relate(target, golden, context, statistics, tensors=False)
        early = first_origin(judge_unit(measured("statistics", statistics, []), options.policy), options)
        progress(0.0, with_early(say("pipeline.reading_tensors"), early))
    facts = measure(
        target, golden, context, mode, threads=threads, cancelled=cancelled,
        progress=lambda done, text: progress(done * share, with_early(text, early)),
    )  # fmt: skip
    tell_other_words(target, golden, matched.pairs, context, facts)
    relate(target, golden, context, facts, tensors=options.tensors)
    for own, passed in ((context.target, arguments[0]), (context.golden, arguments[1])):
        rows = np.flatnonzero(np.isin(own, passed) & np.isin(facts.outcome, (Outcome.SCALAR, Outcome.KIND)))
        facts.outcome[rows], facts.equal[rows] = Outcome.FORM, -1
    if reference is not None:
        distances = measure_distances(
            target, golden, reference, matched.pairs, matched.items, options, threads=threads, cancelled=cancelled,
            progress=lambda done, text: progress(share + done * (1 - share), text),
        )  # fmt: skip
        facts = replace(facts, distances=distances)
    facts.outcome[~context.both & (matched.pairs.method[matched.items.pair] == Method.FUSED)] = Outcome.INSIDE
    problems = [
        *matched.problems,
        *_unreadable(target, golden, matched.items, facts),
        *_nothing(target, golden, context, facts),
    ]
    return measured(mode, facts, problems)


def judge_unit(measured: MeasuredUnit, policy_text: str) -> Unit:
    """Opinions of a measured unit under a policy; reads no tensor and gathers nothing. Classes are still blank."""
    context, facts = measured.context, measured.facts
    policy = load_policy(policy_text)
    names = _pair_names(measured) if policy.scale or policy.ignore else [""] * len(measured.pairs)
    own = score.find_own_rounding(context, facts, _function_calls(measured), policy)
    bits = not have_other_kernels(measured.target.header.run, measured.golden.header.run)
    opinions = judge(context, facts, names, policy, measured.mode, own, bits=bits)
    if policy.base == "default":
        opinions = excuse_beside_none(measured, excuse_rounding(measured, opinions))
        opinions = excuse_folded(measured, opinions)
    if facts.distances is not None:
        floors = score.floors(context, policy, score.factors(names, policy), own)
        opinions = apply_reference(opinions, facts.distances, *floors)
    n = len(measured.pairs)
    blank = NodeOpinions(
        verdict=node_verdicts(context, opinions),
        cls=np.zeros(n, np.int8),
        in_score=np.full(n, np.nan),
        out_score=np.full(n, np.nan),
    )
    return measured.with_opinions(opinions, blank)


def _function_calls(unit: MeasuredUnit) -> Bool:
    """By node pair: a forward call of a function, made by both sides."""
    nodes, pairs = unit.target.nodes, unit.pairs
    if not len(nodes):
        return np.zeros(len(pairs), bool)
    forward = (nodes.kind == NodeKind.API) & (nodes.direction == Direction.FORWARD)
    found: Bool = forward[pairs.target] & (pairs.target >= 0) & (pairs.golden >= 0)
    return found


def _pair_names(unit: MeasuredUnit) -> list[str]:
    return [
        unit.target.nodes.names[t] if t >= 0 else unit.golden.nodes.names[g]
        for t, g in zip(unit.pairs.target.tolist(), unit.pairs.golden.tolist(), strict=True)
    ]


def _without_tensors(target: RankDump, golden: RankDump) -> str:
    mode = mode_of(target, golden)
    return "statistics" if mode == "tensor" else mode


def _nothing(target: RankDump, golden: RankDump, context: Context, facts: Facts) -> list[Problem]:
    """Said where tensors met tensors and no two of them hold anything that can be compared."""
    tensors = context.both & (context.kind == Kind.TENSOR)
    if not tensors.any() or (facts.outcome[tensors] != Outcome.NO_DATA).any():
        return []
    held = " and ".join(
        f"{head.summary or 'nothing'} ({word})" for word, head in (("target", target.header), ("golden", golden.header))
    )
    return [
        Problem(
            loc=f"step{target.ref.step}/{target.ref.label}",
            kind="nothing_compared",
            message=say("pipeline.no_tensor_could_compared_have_nothing", held=held),
        )
    ]


def _unreadable(target: RankDump, golden: RankDump, items: ItemPairs, facts: Facts) -> list[Problem]:
    out = []
    for row, message in facts.errors.items():
        dump, item = (target, items.target[row]) if items.target[row] >= 0 else (golden, items.golden[row])
        out.append(
            Problem(
                loc=f"step{dump.ref.step}/{dump.ref.label}/{item_name(dump, int(item))}",
                kind="damaged" if is_damage(message) else "tensor_unreadable",
                message=message,
            )
        )
    return out
