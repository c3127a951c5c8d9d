"""Two ranks in, one unit out. No database here: the CLI and the server share this."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dumpscope.analysis.reference import apply_reference
from dumpscope.analysis.unit.gather_columns import node_verdicts
from dumpscope.domain.context import Context, gather
from dumpscope.domain.facts import Facts, ItemPairs, Method, NodeOpinions, NodePairs, Outcome
from dumpscope.domain.options import Options
from dumpscope.domain.records import Kind, RankDump, item_name
from dumpscope.domain.result import ResultTree, Unit
from dumpscope.errors import Problem
from dumpscope.match import Matched, match
from dumpscope.pipeline.compare.measure import Cancelled, Progress, measure, mode_of
from dumpscope.pipeline.compare.provisional import MARK, first_origin, worth_telling
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
    threads: int = 2,
    progress: Progress = lambda _done, _message: None,
    cancelled: Cancelled = lambda: False,
) -> Unit:
    """Match, measure and judge one rank of one step. Classes are preliminary until a `Conclusion` has seen all units.

    reference: the same rank of an absolute reference
    """
    matched = match(target, golden, options)
    mode = mode_of(target, golden) if options.tensors else _without_tensors(target, golden)
    context = gather(target, golden, matched.pairs, matched.items)
    share = 1 if reference is None else 1 / 3
    early = ""
    if mode == "tensor" and worth_telling(context):
        early = _early(target, golden, matched, context, options, step, rank)
        progress(0.0, say("pipeline.reading_tensors", early=early))
    facts = measure(
        target, golden, context, mode, threads=threads, cancelled=cancelled,
        progress=lambda done, text: progress(done * share, _with_early(text, early)),
    )  # fmt: skip
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
    unit = judge_unit(
        Columns(
            step=step, rank=rank, target=target, golden=golden, mode=mode, pairs=matched.pairs, items=matched.items,
            tree=matched.tree, facts=facts, problems=problems,
        ),
        options.policy,
        context,
    )  # fmt: skip
    return unit if reference is None else replace(unit, reference=reference.header)


def _with_early(text: str, early: str) -> str:
    return say("jobs.early", text=text, early=early) if early else text


def _early(
    target: RankDump, golden: RankDump, matched: Matched, context: Context, options: Options, step: int, rank: int
) -> str:
    """What the statistics alone say, for the messages of the job that reads the tensors."""
    facts = measure(
        target, golden, context, "statistics", threads=1, progress=lambda _done, _text: None, cancelled=lambda: False
    )
    columns = Columns(
        step=step, rank=rank, target=target, golden=golden, mode="statistics", pairs=matched.pairs,
        items=matched.items, tree=matched.tree, facts=facts, problems=[],
    )  # fmt: skip
    node = first_origin(judge_unit(columns, options.policy, context), options)
    return "" if node is None else f"{MARK}{node}"


class Columns:
    """What is stored of a unit and enough to judge it again: everything but the opinions."""

    def __init__(
        self,
        *,
        step: int,
        rank: int,
        target: RankDump,
        golden: RankDump,
        mode: str,
        pairs: NodePairs,
        items: ItemPairs,
        tree: ResultTree,
        facts: Facts,
        problems: list[Problem],
    ) -> None:
        self.step, self.rank, self.target, self.golden, self.mode = step, rank, target, golden, mode
        self.pairs, self.items, self.tree, self.facts, self.problems = pairs, items, tree, facts, problems


def judge_unit(columns: Columns, policy_text: str, context: Context | None = None) -> Unit:
    """Opinions of a measured unit under a policy; reads no tensor."""
    if context is None:
        context = gather(columns.target, columns.golden, columns.pairs, columns.items)
    policy = load_policy(policy_text)
    names = _pair_names(columns) if policy.scale or policy.ignore else [""] * len(columns.pairs)
    opinions = judge(context, columns.facts, names, policy, columns.mode)
    if columns.facts.distances is not None:
        floors = score.floors(context, policy, score.factors(names, policy))
        opinions = apply_reference(opinions, columns.facts.distances, *floors)
    verdict = node_verdicts(context, opinions)
    n = len(columns.pairs)
    blank = NodeOpinions(
        verdict=verdict, cls=np.zeros(n, np.int8), in_score=np.full(n, np.nan), out_score=np.full(n, np.nan)
    )
    return Unit(
        step=columns.step,
        rank=columns.rank,
        target=columns.target,
        golden=columns.golden,
        mode=columns.mode,
        pairs=columns.pairs,
        items=columns.items,
        tree=columns.tree,
        facts=columns.facts,
        item_opinions=opinions,
        node_opinions=blank,
        problems=columns.problems,
    )


def _pair_names(columns: Columns) -> list[str]:
    return [
        columns.target.nodes.names[t] if t >= 0 else columns.golden.nodes.names[g]
        for t, g in zip(columns.pairs.target.tolist(), columns.pairs.golden.tolist(), strict=True)
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
                kind="tensor_unreadable",
                message=message,
            )
        )
    return out
