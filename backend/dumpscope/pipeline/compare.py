"""Two ranks in, one unit out; all units in, one answer out. No database here: the CLI and the server share this."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dumpscope.analysis.case import Case
from dumpscope.analysis.classes import classify, exactness
from dumpscope.analysis.finding import Finding
from dumpscope.analysis.origin import find_origins
from dumpscope.analysis.ranks import RankFindings, causal_order, drop_received
from dumpscope.analysis.settings import describe
from dumpscope.analysis.story import frames, node_verdicts, tell
from dumpscope.analysis.words import describe_finding
from dumpscope.domain.context import Context, gather
from dumpscope.domain.facts import Facts, ItemPairs, NodeOpinions, NodePairs, Outcome, Verdict
from dumpscope.domain.options import Options
from dumpscope.domain.phrases import english
from dumpscope.domain.records import RankDump, item_name
from dumpscope.domain.result import Answer, Counts, FirstNo, ResultTree, Side, Unit
from dumpscope.errors import Problem
from dumpscope.match import match
from dumpscope.pipeline.measure import Cancelled, Progress, measure, mode_of
from dumpscope.verdict.judge import judge
from dumpscope.verdict.policy import load_policy
from dumpscope.verdict.score import common_floor
from dumpscope.verdict.sentences import item_metrics, sentence


def compare_rank(
    target: RankDump,
    golden: RankDump,
    *,
    step: int,
    rank: int,
    options: Options,
    threads: int = 2,
    progress: Progress = lambda _done, _message: None,
    cancelled: Cancelled = lambda: False,
) -> Unit:
    """Match, measure and judge one rank of one step. Classes are preliminary until `conclude` has seen all units."""
    matched = match(target, golden, options)
    mode = mode_of(target, golden) if options.tensors else _without_tensors(target, golden)
    context = gather(target, golden, matched.pairs, matched.items)
    facts = measure(target, golden, context, mode, threads=threads, progress=progress, cancelled=cancelled)
    problems = [*matched.problems, *_unreadable(target, golden, matched.items, facts)]
    return judge_unit(
        Columns(
            step=step, rank=rank, target=target, golden=golden, mode=mode, pairs=matched.pairs, items=matched.items,
            tree=matched.tree, facts=facts, problems=problems,
        ),
        options.policy,
        context,
    )  # fmt: skip


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


def conclude(
    units: Sequence[Unit], *, policy: str, target: Side, golden: Side, problems: Sequence[Problem] = ()
) -> tuple[Answer, list[Unit]]:
    """The answer over all units, and the units with their final classes."""
    contexts = [gather(unit.target, unit.golden, unit.pairs, unit.items) for unit in units]
    found: list[RankFindings] = []
    touched: set[int] = set()  # steps of which any bit differs: later weights may differ too
    wrong: set[int] = set()  # steps with a finding of their own
    for unit, context in sorted(zip(units, contexts, strict=True), key=lambda entry: (entry[0].step, entry[0].rank)):
        case = _case(unit, context, policy)
        after_wrong = any(step < unit.step for step in wrong)
        first_step = not any(step < unit.step for step in touched)
        findings = find_origins(case, first_step=first_step, after_wrong=after_wrong)
        if not first_step:
            findings = [finding for finding in findings if finding.kind != "structure" or finding.items]
        if (case.facts.equal == 0).any():
            touched.add(unit.step)
        if any(finding.items or finding.group for finding in findings):
            wrong.add(unit.step)
        found.append(RankFindings(step=unit.step, rank=unit.rank, case=case, findings=findings))
    found = _without_echoes(drop_received(found))
    modes = {(unit.step, unit.rank): unit.mode for unit in units}
    origins = [
        describe_finding(entry.case, finding, step=entry.step, rank=entry.rank, mode=modes[entry.step, entry.rank])
        for entry, finding in causal_order(found)
    ]
    by_place = {(entry.step, entry.rank): entry for entry in found}
    finished = []
    for unit in units:
        entry = by_place[unit.step, unit.rank]
        exact = exactness(unit.items, unit.facts.equal, len(unit.pairs))
        opinions = classify(entry.case.story, unit.node_opinions.verdict, exact, entry.findings)
        finished.append(replace(unit, node_opinions=opinions))
    settings = {
        english([setting]): setting
        for unit, context in zip(units, contexts, strict=True)
        for setting in describe(unit.target.header, unit.golden.header, context, unit.facts)
    }
    all_problems = [*problems, *(problem for unit in units for problem in _unit_problems(unit))]
    answer = Answer(
        mode=units[0].mode if units else "structure",
        policy=load_policy(policy).name,
        target=target,
        golden=golden,
        counts=_counts(units),
        first_no=_first_no(finished, contexts),
        origins=origins,
        settings=list(settings),
        settings_said=list(settings.values()),
        problems=list(dict.fromkeys(all_problems)),
    )
    return answer, finished


def _case(unit: Unit, context: Context, policy: str) -> Case:
    bulk = common_floor(context, load_policy(policy))
    story = tell(unit.target, unit.golden, unit.pairs, unit.tree, context, unit.facts, unit.item_opinions, bulk)
    return Case(
        target=unit.target,
        golden=unit.golden,
        pairs=unit.pairs,
        tree=unit.tree,
        context=context,
        facts=unit.facts,
        opinions=unit.item_opinions,
        story=story,
        floor=bulk,
        first_item=np.searchsorted(unit.items.pair, np.arange(len(unit.pairs) + 1)),
    )


def _without_echoes(found: list[RankFindings]) -> list[RankFindings]:
    """An argument or computation that fails in every step, or an extra call, is one cause: keep its first step."""
    seen: set[tuple[int, str, str]] = set()
    out = []
    for entry in sorted(found, key=lambda e: (e.step, e.rank)):
        kept: list[Finding] = []
        for finding in entry.findings:
            key = (entry.rank, entry.case.story.names[finding.pair], finding.kind)
            if key not in seen:
                kept.append(finding)
            seen.add(key)
        out.append(RankFindings(step=entry.step, rank=entry.rank, case=entry.case, findings=kept))
    return out


def _unit_problems(unit: Unit) -> list[Problem]:
    return [*unit.target.problems, *unit.golden.problems, *unit.problems]


def _counts(units: Sequence[Unit]) -> Counts:
    verdicts = np.zeros(4, np.int64)
    outcomes = np.zeros(len(Outcome), np.int64)
    unreadable = 0
    for unit in units:
        both = (unit.items.target >= 0) & (unit.items.golden >= 0)
        verdicts += np.bincount(unit.item_opinions.verdict[both], minlength=4)
        outcomes += np.bincount(unit.facts.outcome, minlength=len(Outcome))
        unreadable += len(unit.facts.errors)
    return Counts(
        nodes=sum(len(unit.pairs) for unit in units),
        items=sum(len(unit.items) for unit in units),
        yes=int(verdicts[Verdict.YES]),
        no=int(verdicts[Verdict.NO]),
        warning=int(verdicts[Verdict.WARNING]),
        not_comparable=int(verdicts[Verdict.NA]),
        unmatched_target=int(outcomes[Outcome.TARGET_ONLY]),
        unmatched_golden=int(outcomes[Outcome.GOLDEN_ONLY]),
        unreadable=unreadable,
    )


def _first_no(units: Sequence[Unit], contexts: Sequence[Context]) -> FirstNo | None:
    for unit, context in sorted(zip(units, contexts, strict=True), key=lambda entry: (entry[0].step, entry[0].rank)):
        rows = np.flatnonzero(unit.item_opinions.verdict == Verdict.NO)
        if not len(rows):
            continue
        row = int(rows[0])
        pair = int(unit.items.pair[row])
        t, g = int(unit.pairs.target[pair]), int(unit.pairs.golden[pair])
        item = int(unit.items.target[row])
        return FirstNo(
            step=unit.step,
            rank=unit.rank,
            node=unit.target.nodes.names[t] if t >= 0 else unit.golden.nodes.names[g],
            item=item_name(unit.target, item) if item >= 0 else item_name(unit.golden, int(unit.items.golden[row])),
            metrics=item_metrics(unit.facts, row),
            reason=sentence(context, unit.facts, unit.item_opinions, row),
            stack=frames(unit.target, t) or frames(unit.golden, g),
        )
    return None


def _pair_names(columns: Columns) -> list[str]:
    return [
        columns.target.nodes.names[t] if t >= 0 else columns.golden.nodes.names[g]
        for t, g in zip(columns.pairs.target.tolist(), columns.pairs.golden.tolist(), strict=True)
    ]


def _without_tensors(target: RankDump, golden: RankDump) -> str:
    mode = mode_of(target, golden)
    return "statistics" if mode == "tensor" else mode


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
