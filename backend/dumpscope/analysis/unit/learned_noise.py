"""What the runs of a pair differ by without any fault: learned from what their calls show, and from how the runs were made."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

import numpy as np

from dumpscope.analysis.unit.case import Case, History
from dumpscope.analysis.unit.left_over import identify
from dumpscope.analysis.unit.noise import JUMP, OTHER_WAY, have_other_dtypes
from dumpscope.analysis.unit.weight_items import holds_weight
from dumpscope.domain.context import Context
from dumpscope.domain.facts import Facts, ItemOpinions, Method, Outcome, Verdict
from dumpscope.domain.records import Bool, Float64, Kind, RankDump, Role
from dumpscope.domain.run import Run
from dumpscope.verdict.rules import CODES

MEASURED: Final = tuple(CODES[rule] for rule in ("T-2", "M-2"))
"""Rules of a No that follows from the size of a difference."""
_HALF: Final = ("torch.bfloat16", "torch.float16")
_COMMON: Final = 0.1
"""Share of tensors from which on a dtype is in common use, as for floors."""
_FEW: Final = 1 / 3
"""Share of what an optimizer made that may be steps of elements which are pure rounding."""
_KERNELS: Final = ("threads", "cpu_capability")
"""Numbers of a run by which a processor's kernels add in another order."""


def excuse_noise(case: Case, opinions: ItemOpinions, score: Float64, named: Iterable[int]) -> ItemOpinions:
    """The opinions with a warning for each No that is no larger than the noise of this pair at its node.

    The threshold of a node (noise.py) is what the calls before it show three times over, and no less than what the dtypes of the
    two runs explain; an optimizer may make three times of what it takes, and so may any call behind weights of a noisy step.
    score: those of the opinions, of sums measured against their terms
    named: node pairs of findings; what a cause did there is no noise
    """
    columns, context = case.columns, case.context
    if columns.quiet:
        return opinions
    # Where nothing tells why the runs should be noisy, only an optimizer is excused, and what it left to a later step.
    inherited = case.history.noisy and not case.history.went_wrong
    noisy = inherited or are_noisy(case)
    bad = (opinions.verdict == Verdict.NO) & np.isin(opinions.rule, MEASURED)
    bad &= case.facts.outcome == Outcome.COMPARED
    cause = np.zeros(len(columns), bool)
    cause[list(named)] = True
    # An optimizer divides by the size of a gradient, so what it makes may be farther apart than what it takes; and so may be
    # what a later step computes with a weight that it made.
    grows = np.arange(len(columns)) >= context.end
    if inherited:
        grows[:] = True
    elif case.history.differs:
        grows[context.pair[holds_weight(case.target, context, columns.kind)]] = True
    own = columns.threshold if noisy else np.zeros(len(columns))
    taken = np.fmax(columns.own_in, columns.seen_in)  # a backward pass computes with what its forward call saved
    limit = np.where(grows, np.fmax(columns.threshold, JUMP * taken), own)[context.pair]
    with np.errstate(invalid="ignore"):
        excused = bad & ~cause[context.pair] & (score <= limit)
        if _are_scaled(case):  # what an optimizer takes of these gradients is not
            excused &= ~case.received | (context.pair < context.end)
        wrong = np.zeros(len(columns), bool)
        wrong[context.pair[bad & ~excused & case.received]] = True
        excused &= ~wrong[context.pair] | (score <= own[context.pair])
        if excused.any():  # a module puts out what a call inside it made, and the next call takes it
            numbers = identify(context)
            excused |= bad & ~cause[context.pair] & np.isin(numbers, numbers[excused])
    return _excuse(opinions, excused, "C-2")


def inherited_rounding(history: History, facts: Facts, bulk: float) -> float:
    """The score up to which a step in fine numbers shows the rounding of 16 bits that the steps before left in its weights, where
    statistics alone were compared: these show less of what a call takes than there is. bulk: the floor of distances"""
    before = history.before
    if before is None or not history.noisy or history.went_wrong or not bulk or (facts.unequal >= 0).any():
        return 0.0
    return OTHER_WAY * before.bulk / bulk if before.bulk > bulk else 0.0


def excuse_lifted(case: Case, opinions: ItemOpinions, named: Iterable[int]) -> ItemOpinions:
    """The opinions with a warning for each No of a vector that an optimizer made of gradients that agree, where most of what it
    made agrees.

    Some elements of a bias's gradient may be pure rounding, beside others that are not (those of the keys in one bias of queries,
    keys and values): the gradient agrees, and an optimizer that divides by the size of each element makes a full step of every
    one. A wrong optimizer shows in all that it made, a wrong learning rate of a group in its matrices, too.
    named: as for excuse_noise
    """
    context, columns = case.context, case.columns
    bad = (opinions.verdict == Verdict.NO) & np.isin(opinions.rule, MEASURED) & (case.facts.outcome == Outcome.COMPARED)
    spoilt = np.zeros(len(columns), bool)
    spoilt[list(named)] = True
    spoilt[context.pair[(opinions.verdict == Verdict.NO) & case.received]] = True
    made = (context.role == Role.OUTPUT) & (context.kind == Kind.TENSOR) & (context.pair >= context.end)
    made &= np.isfinite(opinions.score) & (context.target >= 0)
    items = case.target.items
    vector = np.array([len(shape) <= 1 for shape in items.shapes] + [False])
    excused = np.zeros(len(context), bool)
    api = context.api[context.pair]
    for one in np.unique(api[made & bad]).tolist():
        rows = np.flatnonzero(made & (api == one))
        wrong = rows[bad[rows]]
        if len(wrong) <= _FEW * len(rows) and vector[items.shape[context.target[wrong]]].all():
            excused[wrong[~spoilt[context.pair[wrong]]]] = True
    return _excuse(opinions, excused, "C-1")


def excuse_crossed(case: Case, opinions: ItemOpinions, score: Float64, named: Iterable[int]) -> ItemOpinions:
    """The opinions with a warning for each No of what noise moved over a jump, and of what follows from that.

    score: those of the opinions, lower behind jumps (`followed.follow_rounding`); named: as for excuse_noise
    """
    spoilt = np.zeros(len(case.columns), bool)
    spoilt[list(named)] = True
    with np.errstate(invalid="ignore"):
        excused = (opinions.verdict == Verdict.NO) & (score <= 1) & (score < opinions.score)
    return _excuse(opinions, excused & ~spoilt[case.context.pair], "C-4")


def _excuse(opinions: ItemOpinions, excused: Bool, rule: str) -> ItemOpinions:
    if not excused.any():
        return opinions
    return replace(
        opinions,
        verdict=np.where(excused, int(Verdict.WARNING), opinions.verdict).astype(np.int8),
        rule=np.where(excused, CODES[rule], opinions.rule).astype(np.int8),
    )


def _are_scaled(case: Case) -> bool:
    """The gradients of passes that were put together were multiplied by something to be those of the other side."""
    made = (case.target.ref.passes, case.golden.ref.passes)
    return any(one is not None and one.gradients != 1.0 for one in made)


def are_noisy(case: Case) -> bool:
    """The runs are known to be noisy: other dtypes, other kernels, a fused call against the calls that do the same, or 16-bit
    numbers in common use."""
    context = case.context
    if have_other_dtypes(context) or use_other_kernels(case.target, case.golden):
        return True
    return bool((case.pairs.method == Method.FUSED).any()) or uses_halves(context)


def uses_halves(context: Context) -> bool:
    """16-bit numbers are in common use."""
    half = np.array([name in _HALF for name in context.dtypes] + [False])[context.t_dtype]
    tensors = context.t_dtype >= 0
    return bool(tensors.any() and half[tensors].mean() >= _COMMON)


def use_other_kernels(target: RankDump, golden: RankDump) -> bool:
    """The runs say themselves that they computed with other kernels: another torch or accelerator, other instructions or another
    number of threads. Then equal bits of some calls do not promise equal bits of the next."""
    runs = target.header.run, golden.header.run
    if runs[0] is None or runs[1] is None:
        return False
    return _kernels(runs[0]) != _kernels(runs[1])


def _kernels(run: Run) -> list[object]:
    processor = [] if run.accelerators else [run.numerics.get(name) for name in _KERNELS]
    return [run.versions.get("torch"), sorted(run.accelerators), *processor]


def excuse_updates(case: Case, opinions: ItemOpinions) -> ItemOpinions:
    """The opinions with a warning for each No of a weight that an optimizer of an earlier step moved by a gradient of pure
    rounding. The gradient that it gets in this step shows which ones these are, or what the optimizer made in the one before."""
    context, columns = case.context, case.columns
    bad = (opinions.verdict == Verdict.NO) & np.isin(opinions.rule, MEASURED)
    if not case.history.differs or not bad.any():
        return opinions
    cancels = (opinions.rule == CODES["C-1"]) & (context.pair < context.end)
    sums = {(columns.labels[context.pair[row]], int(context.elements[row])) for row in np.flatnonzero(cancels).tolist()}
    made = case.history.before.updates if case.history.before is not None else frozenset()
    codes = identify(context).tolist()
    excused = np.zeros(len(context), bool)
    for row in np.flatnonzero(bad & holds_weight(case.target, context, columns.kind)).tolist():
        excused[row] = codes[row] in made or (columns.labels[context.pair[row]], int(context.elements[row])) in sums
    return _excuse(opinions, excused, "C-1")


def find_updates(context: Context, opinions: ItemOpinions) -> frozenset[int]:
    """Numbers (`left_over.identify`) of what an optimizer made of rounding in this step."""
    made = np.isin(opinions.rule, (CODES["C-1"], CODES["C-4"])) & (context.role == Role.OUTPUT)
    made &= context.pair >= context.end
    return frozenset(identify(context)[made].tolist())
