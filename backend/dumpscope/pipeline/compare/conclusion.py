"""From judged units to the answer. Units are looked at one by one, so that many ranks need the memory of one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, replace
from functools import partial

import numpy as np

from dumpscope.analysis.classes import cause_class, classify, fold_equality, mark_causes
from dumpscope.analysis.origins import describe_finding, find_origins
from dumpscope.analysis.ranks.collectives import Collective
from dumpscope.analysis.ranks.messages import Message, read_messages
from dumpscope.analysis.ranks.origins import (
    DescribedFinding,
    RankFindings,
    add_reached_ranks,
    connect_steps,
    describe_for_ranks,
    drop_echoes,
    drop_received,
    find_repeated,
    join_replicas,
    sort_causally,
    time_key,
)
from dumpscope.analysis.reference import hide_golden_faults, target_at_fault
from dumpscope.analysis.rules.ordering import excuse_ties
from dumpscope.analysis.rules.rule import Finding
from dumpscope.analysis.setting_differences import find_setting_differences
from dumpscope.analysis.suspects import find_suspects
from dumpscope.analysis.unit.calls import stack_of
from dumpscope.analysis.unit.case import Case, History, StepEnd
from dumpscope.analysis.unit.dataflow import Flow, find_makers
from dumpscope.analysis.unit.gather_columns import gather_columns, name_nodes, node_verdicts
from dumpscope.analysis.unit.learned_noise import (
    are_noisy,
    excuse_crossed,
    excuse_lifted,
    excuse_noise,
    excuse_updates,
    find_updates,
)
from dumpscope.analysis.unit.no_effect import excuse_without_effect
from dumpscope.analysis.unit.noise import find_crossed, find_flips, have_other_dtypes, may_bend
from dumpscope.analysis.unit.previous_step import summarize_step
from dumpscope.analysis.unit.rounding_only import scores_of_sums
from dumpscope.analysis.unit.weight_items import holds_weight
from dumpscope.domain.context import Context
from dumpscope.domain.coverage import LOST, Coverage, End, Unjudged
from dumpscope.domain.facts import Facts, ItemOpinions, MaskedRows, Origin, Outcome, Suspect, Verdict
from dumpscope.domain.records import item_name
from dumpscope.domain.result import Answer, Counts, FirstNo, Side, Unit
from dumpscope.domain.suspects import keep_suspects
from dumpscope.errors import Problem
from dumpscope.export.stack_frames import call_text
from dumpscope.match.amounts.data import find_amounts
from dumpscope.match.amounts.kept import find_kept
from dumpscope.match.amounts.last import find_last
from dumpscope.pipeline.compare.golden_off import GoldenFaults, add_reference_words
from dumpscope.pipeline.compare.unit_store import UnitStore
from dumpscope.readers.masked_rows import read_masked_rows
from dumpscope.readers.picks import check_picks, check_steps
from dumpscope.texts import Phrase, english, phrase
from dumpscope.verdict.coverage import count_reasons, find_ends, find_first, find_reasons
from dumpscope.verdict.policy import load_policy
from dumpscope.verdict.rules import CODES
from dumpscope.verdict.score import common_floor
from dumpscope.verdict.sentences import describe_verdict, item_metrics
from dumpscope.verdict.shown_errors import node_errors

Place = tuple[int, int]
"""Step and rank of a unit."""


class Conclusion:
    """Looks at all units of a comparison, by step and rank; then gives the answer, and the units whose classes it changes."""

    def __init__(self, policy: str) -> None:
        """policy: a name or a policy file's text. Raises UsageError."""
        self._policy = load_policy(policy)
        self._found: list[RankFindings] = []
        self._unmarked: dict[Place, dict[int, int]] = {}  # classes of the pairs with a finding, before and after it
        self._marked: dict[Place, dict[int, int]] = {}
        self._touched: set[int] = set()  # steps of which any bit differs: later weights may differ too
        self._noisy: set[int] = set()  # those of them whose runs are known to round in other ways
        self._ends: dict[int, StepEnd] = {}  # by rank, of the last step taken in
        self._wrong: set[int] = set()  # steps with a finding of their own
        self._repeated: dict[
            int, dict[str, list[int]]
        ] = {}  # by rank and name of a call with a finding: steps that repeat it
        self._changes: dict[Place, dict[int, int]] = {}
        self._mode: str | None = None
        self._counts = Counts()
        self._reasons: Counter[str] = Counter()
        self._cut: list[End] = []
        self._first_unjudged: list[tuple[RankFindings, float, Unjudged]] = []  # by unit, with share of the run
        self._first_no: list[tuple[RankFindings, int, float, FirstNo]] = []  # by unit, with pair and share of the run
        self._settings: dict[str, Phrase] = {}
        self._crossed = ""  # the first call of which noise moved elements over a jump
        self._behind_jumps = 0  # items that follow from such calls
        self._other_bits = 0  # tensors whose hashes differ and whose statistics agree, where these decide
        self._problems: dict[Problem, None] = {}
        self._suspects: list[Suspect] = []
        self._golden = GoldenFaults()
        self.collectives: list[Collective] = []
        """Communications of all ranks; after `answer`."""

    def add(self, unit: Unit) -> Unit:
        """Look at the next unit; returns it with the classes that follow from this unit alone."""
        context = unit.context
        floor = common_floor(context, self._policy)

        def make_case(unit: Unit, facts: Facts, opinions: ItemOpinions) -> Case:
            return _case(unit, context, facts, opinions, floor, self._history(unit))

        case = make_case(unit, *hide_golden_faults(unit.facts, unit.item_opinions))
        self._golden.add(unit, make_case)
        findings = self._findings(unit, case)
        flow = Flow(case=case, maker=find_makers(case)) if findings or case.columns.wrong.any() else None
        if self._policy.base == "default":
            unit = _without_noise(unit, case, findings, floor)
            updates = find_updates(context, unit.item_opinions)
            self._ends[unit.rank] = replace(self._ends[unit.rank], updates=updates)
        messages = read_messages(case, unit.rank)
        found = RankFindings(
            step=unit.step,
            rank=unit.rank,
            findings=[
                add_reference_words(unit, described) for described in _describe_findings(unit, flow, findings, messages)
            ],
            messages=messages,
        )
        self._note_repeated(case, found)
        self._found.append(found)
        self._mode = self._mode or unit.mode
        self._counts = Counts(**_sum(self._counts, _counts(unit)))
        self._cover(unit, found)
        first = _first_no(unit, context)
        if first is not None:
            self._first_no.append((found, first[0], first[0] / len(unit.pairs), first[1]))
        for difference in find_setting_differences(unit.target, unit.golden, context, unit.facts):
            self._settings[english([difference])] = difference
        crossed = unit.item_opinions.rule == CODES["C-4"]
        if crossed.any():
            self._crossed = self._crossed or case.columns.names[int(context.pair[np.flatnonzero(case.crossed)[0]])]
            self._behind_jumps += int(crossed.sum())
        self._other_bits += int((unit.item_opinions.rule == CODES["H-2"]).sum())
        for problem in (*unit.target.problems, *unit.golden.problems, *unit.problems):
            self._problems[problem] = None
        exact = fold_equality(unit.items, np.where(context.unread, np.int8(-1), unit.facts.equal), len(unit.pairs))
        opinions = classify(case.columns, unit.node_opinions.verdict, exact)
        self._unmarked[unit.step, unit.rank] = {finding.pair: int(opinions.cls[finding.pair]) for finding in findings}
        if flow is not None:
            errors, _ = node_errors(unit, context.role)
            self._suspects += find_suspects(case, opinions.cls, errors, findings, rank=unit.rank, place_of=call_text)
            opinions = replace(opinions, spread=flow.find_spread())
        mark_causes(opinions.cls, findings)
        self._marked[unit.step, unit.rank] = {finding.pair: int(opinions.cls[finding.pair]) for finding in findings}
        return replace(unit, node_opinions=opinions)

    def answer(
        self, *, target: Side, golden: Side, reference: Side | None = None, problems: Sequence[Problem] = ()
    ) -> Answer:
        """The answer over all units taken in. problems: found before and beside them"""
        traffic = connect_steps(self._found)
        repeated = {(rank, name): steps for rank, names in self._repeated.items() for name, steps in names.items()}
        self.collectives = [one for _, connected in sorted(traffic.items()) for one in connected.collectives]
        found = add_reached_ranks(join_replicas(drop_echoes(drop_received(self._found, traffic), repeated)), traffic)
        for entry in found:
            place = entry.step, entry.rank
            final = self._unmarked[place] | {one.finding.pair: int(cause_class(one.finding)) for one in entry.findings}
            self._changes[place] = {pair: code for pair, code in final.items() if self._marked[place][pair] != code}
        first = min(self._first_no, key=lambda no: time_key(traffic[no[0].step], no[0], no[1], no[2]), default=None)
        unjudged = min(
            self._first_unjudged,
            key=lambda one: time_key(traffic[one[0].step], one[0], one[2].pair, one[1]),
            default=None,
        )
        named = {(one.step, one.rank, finding.finding.pair) for one in found for finding in one.findings}
        all_problems = list(dict.fromkeys([*problems, *self._problems]))
        settings = list(self._settings.values())
        settings += [phrase("setting.bits", count=self._other_bits)] if self._other_bits else []
        if self._crossed:
            settings.append(phrase("setting.crossed", call=self._crossed, count=self._behind_jumps))
        return Answer(
            mode=self._mode or "structure",
            policy=self._policy.name,
            target=target,
            golden=golden,
            counts=self._counts,
            first_no=first[3] if first else None,
            origins=list(
                _note_first_step([one.origin for one in sort_causally(found, traffic)], {one.step for one in found})
            ),
            settings=[english([one]) for one in settings],
            settings_said=settings,
            reference=self._golden.answer(reference),
            problems=all_problems,
            coverage=Coverage(
                reasons=dict(self._reasons),
                first=None if unjudged is None else unjudged[2],
                ends=self._cut,
                lost=sum(problem.kind in LOST for problem in all_problems),
            ),
            suspects=keep_suspects(self._suspects, named),
        )

    def _note_repeated(self, case: Case, found: RankFindings) -> None:
        """Which calls of earlier steps go wrong again in this one; those of this one are looked for in the next."""
        names = self._repeated.setdefault(found.rank, {})
        for name in find_repeated(case.columns, names.keys()):
            names[name].append(found.step)
        for entry in found.findings:
            names.setdefault(entry.name, [])

    def _cover(self, unit: Unit, found: RankFindings) -> None:
        reasons = find_reasons(unit)
        self._reasons.update(count_reasons(reasons))
        self._cut += find_ends(unit, reasons)
        first = find_first(unit, reasons)
        if first is not None:
            self._first_unjudged.append((found, first.pair / len(unit.pairs), first))

    def changes(self, step: int, rank: int) -> Mapping[int, int]:
        """The node pairs of a unit whose class, as `add` returned it, is not final, with the final one; after `answer`. The ranks
        together have explained what was found there."""
        return self._changes[step, rank]

    def final(self, unit: Unit) -> Unit:
        """The unit as `add` returned it, with its final classes; after `answer`."""
        changes = self.changes(unit.step, unit.rank)
        if not changes:
            return unit
        cls = unit.node_opinions.cls.copy()
        cls[list(changes)] = list(changes.values())
        return replace(unit, node_opinions=replace(unit.node_opinions, cls=cls))

    def _history(self, unit: Unit) -> History:
        return History(
            step=unit.step,
            differs=any(step < unit.step for step in self._touched),
            went_wrong=any(step < unit.step for step in self._wrong),
            before=self._ends.get(unit.rank),
            noisy=any(step < unit.step for step in self._noisy),
        )

    def _findings(self, unit: Unit, case: Case) -> list[Finding]:
        at_fault = target_at_fault(unit.facts, unit.item_opinions)
        found = find_origins(case)
        self._ends[unit.rank] = summarize_step(case)
        findings = [one for one in found if not one.items or at_fault[list(one.items)].any()]
        sides = unit.target, unit.golden, case.context
        related = case.context.shape_differs.any() and (find_amounts(*sides) or find_kept(*sides) or find_last(*sides))
        put_together = [ref for ref in (unit.target.ref, unit.golden.ref) if ref.joined or ref.passes]
        if case.history.differs or put_together or related or have_other_dtypes(case.context):
            # a split model, other passes, another cache or dtype make calls of their own: those that change no value say nothing
            findings = [finding for finding in findings if not finding.idle]
        if ((case.facts.equal == 0) & ~case.context.unread).any():
            self._touched.add(unit.step)
            if are_noisy(case):
                self._noisy.add(unit.step)
        if any(finding.items or finding.group for finding in findings):
            self._wrong.add(unit.step)
        return findings


def conclude(
    units: UnitStore,
    *,
    policy: str,
    target: Side,
    golden: Side,
    reference: Side | None = None,
    problems: Sequence[Problem] = (),
) -> tuple[Answer, list[Collective]]:
    """The answer over all units, which get their final classes, and their communications. Looks at one unit at a time."""
    conclusion = Conclusion(policy)
    for number, unit in enumerate(units):
        units.judge(number, conclusion.add(unit))
    answer = conclusion.answer(target=target, golden=golden, reference=reference, problems=problems)
    for number, where in enumerate(units.places):
        if conclusion.changes(*where):
            units.judge(number, conclusion.final(units[number]))
    return answer, conclusion.collectives


def _case(unit: Unit, context: Context, facts: Facts, opinions: ItemOpinions, floor: float, history: History) -> Case:
    sides = unit.target, unit.golden
    _, labels, kind, direction = name_nodes(*sides, unit.pairs)
    check = partial(check_steps, *sides, unit.pairs)
    carried = history.differs and not history.went_wrong
    weight = holds_weight(unit.target, context, kind) if carried else np.zeros(len(context), bool)
    crossed = find_crossed(*sides, context, facts, opinions, labels, kind, direction, floor, weight, check)
    columns = gather_columns(
        *sides, unit.pairs, unit.tree, context, facts, opinions, floor, crossed, carried=history.differs
    )
    return Case(
        target=unit.target,
        golden=unit.golden,
        pairs=unit.pairs,
        tree=unit.tree,
        context=context,
        facts=facts,
        opinions=opinions,
        columns=columns,
        first_item=np.searchsorted(unit.items.pair, np.arange(len(unit.pairs) + 1)),
        history=history,
        crossed=np.zeros(len(context), bool) if columns.quiet else crossed,
        bulk=floor,
        check_picks=partial(check_picks, *sides, unit.pairs),
        check_masked_rows=partial(_check_masked_rows, unit, context, floor),
    )


def _check_masked_rows(unit: Unit, context: Context, floor: float, mask: int, result: int) -> MaskedRows | None:
    """As `Case.check_masked_rows` asks."""
    rows = [mask, result]
    if (context.target[rows] < 0).any() or (context.golden[rows] < 0).any():
        return None
    masks, results = ((int(context.target[row]), int(context.golden[row])) for row in rows)
    return read_masked_rows((unit.target, unit.golden), masks, results, floor)


def _without_noise(unit: Unit, case: Case, findings: Sequence[Finding], floor: float) -> Unit:
    """The unit with a warning for each No that its own noise explains, or that has no effect. floor: the unit's, of distances"""
    named = [pair for one in findings for pair in (one.pair, *one.group, *case.context.pair[list(one.items)].tolist())]
    if not (unit.item_opinions.verdict == Verdict.NO).any():
        return unit
    opinions = excuse_updates(case, unit.item_opinions)
    if not case.columns.quiet:
        columns = case.columns
        bent = may_bend(columns.labels, columns.kind)
        flips = find_flips(case.context, case.facts, opinions.score, columns.names, bent, columns.direction, floor)
        opinions = excuse_noise(case, opinions, flips * scores_of_sums(unit, opinions), named)
        if case.crossed.any():
            opinions = excuse_crossed(case, opinions, scores_of_sums(unit, opinions, case), named)
        opinions = excuse_lifted(case, opinions, named)
    opinions = excuse_without_effect(case, opinions, named)
    opinions = excuse_ties(case, opinions, named)
    if opinions is unit.item_opinions:
        return unit
    nodes = replace(unit.node_opinions, verdict=node_verdicts(unit.context, opinions))
    return replace(unit, item_opinions=opinions, node_opinions=nodes)


def _describe_findings(
    unit: Unit, flow: Flow | None, findings: list[Finding], messages: Sequence[Message]
) -> list[DescribedFinding]:
    if flow is None:
        return []
    case, described = flow.case, []
    for finding in findings:
        reach = flow.find_reach([finding.pair, *finding.group])
        origin = describe_finding(case, finding, reach, rank=unit.rank, mode=unit.mode)
        described.append(describe_for_ranks(case, finding, origin, reach.pairs, messages))
    return described


def _counts(unit: Unit) -> Counts:
    both = (unit.items.target >= 0) & (unit.items.golden >= 0)
    verdicts = np.bincount(unit.item_opinions.verdict[both], minlength=len(Verdict))
    outcomes = np.bincount(unit.facts.outcome, minlength=len(Outcome))
    return Counts(
        nodes=len(unit.pairs),
        items=len(unit.items),
        yes=int(verdicts[Verdict.YES]),
        no=int(verdicts[Verdict.NO]),
        warning=int(verdicts[Verdict.WARNING]),
        not_comparable=int(verdicts[Verdict.NA]),
        unmatched_target=int(outcomes[Outcome.TARGET_ONLY]),
        unmatched_golden=int(outcomes[Outcome.GOLDEN_ONLY]),
        unreadable=len(unit.facts.errors),
    )


def _sum(one: Counts, other: Counts) -> dict[str, int]:
    return {
        name: left + right
        for name, left, right in zip(Counts.__dataclass_fields__, astuple(one), astuple(other), strict=True)
    }


def _first_no(unit: Unit, context: Context) -> tuple[int, FirstNo] | None:
    """The unit's first item with verdict No, behind its node pair."""
    rows = np.flatnonzero(unit.item_opinions.verdict == Verdict.NO)
    if not len(rows):
        return None
    row = int(rows[0])
    pair = int(unit.items.pair[row])
    t, g = int(unit.pairs.target[pair]), int(unit.pairs.golden[pair])
    item = int(unit.items.target[row])
    reason = describe_verdict(context, unit.facts, unit.item_opinions, row)
    return pair, FirstNo(
        step=unit.step,
        rank=unit.rank,
        node=unit.target.nodes.names[t] if t >= 0 else unit.golden.nodes.names[g],
        item=item_name(unit.target, item) if item >= 0 else item_name(unit.golden, int(unit.items.golden[row])),
        metrics=item_metrics(context, unit.facts, row),
        reason=english(reason),
        reason_said=reason,
        stack=stack_of(unit.target, t) or stack_of(unit.golden, g),
    )


def _note_first_step(origins: Sequence[Origin], steps: Iterable[int]) -> Iterator[Origin]:
    """The origins, the first of them with a word on the steps before it."""
    for place, origin in enumerate(origins):
        earlier = sum(step < origin.step for step in steps)
        if place or not earlier:
            yield origin
            continue
        said = [*origin.evidence_said, phrase("origin.first_step", step=origin.step, count=earlier)]
        yield replace(origin, evidence=english(said), evidence_said=said)
