"""What a comparison measures (facts) and thinks (opinions), as columns over one step and rank.

Facts never change once measured; opinions are recomputed from them in seconds when the policy changes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, Literal

import numpy as np

from dumpscope.domain.distances import Distances, Standing
from dumpscope.domain.records import Bool, Float64, Int8, Int32, Int64, UInt8
from dumpscope.texts import Phrase, phrase


class Method(IntEnum):
    """How two nodes were found to be the same call; the contract's `match` words."""

    EXACT = 0
    RENAMED = 1
    MAPPED = 2
    FUZZY = 3
    ALIGNED = 4
    NONE = 5  # no partner
    FUSED = 6  # one call against a run of calls; without a partner: one of the run's inner calls


METHOD_WORDS: Final = ("exact", "renamed", "mapped", "fuzzy", "aligned", "none", "fused")


class Leftover(IntEnum):
    """Why a call has no partner, by the rules of docs/matching.md."""

    NONE = 0  # it has one
    INSIDE = 1  # of a run of calls that one fused call of the other side stands for
    FUSED = 2  # one call where the other side makes several
    DECOMPOSED = 3  # one of several calls where the other side makes one
    REPLACED = 4  # other calls stand in its place
    ONE_BACKEND = 5  # its label names a backend, and the other side never calls it
    LEFT_OUT = 6  # the other side's dump does not record such calls, or recorded this one only by name
    INSERTED = 7  # nothing stands in its place
    WRAPPER = 8  # of a wrapper around modules that have partners; the other side has no such wrapper
    ENDED = 9  # the other side's record ends before it
    RECOMPUTED = 10  # activation checkpointing made it again, and the other side made it once
    COMPILED = 11  # the other side runs it inside compiled code, of which it records only the regions


LEFTOVER_WORDS: Final = (
    None, "inside", "fused", "decomposed", "replaced", "one_backend", "left_out", "inserted", "wrapper", "ended",
    "recomputed", "compiled",
)  # fmt: skip


class Outcome(IntEnum):
    """Why an item pair was or was not compared."""

    COMPARED = 0  # numbers (statistics, tensor or hash) were compared
    SCALAR = 1  # non-tensor values were compared
    SHAPE = 2  # shapes differ: nothing else is compared
    TARGET_ONLY = 3
    GOLDEN_ONLY = 4
    UNREADABLE = 5  # a tensor file is missing, refused or damaged
    EMPTY = 6  # both hold no element
    NO_DATA = 7  # both there, but neither side stored a comparable number
    KIND = 8  # a tensor against a non-tensor
    DEFAULT = 10  # an argument that one side gives, with the value that the other takes by default
    FORM = 11  # the same in other words: a mask, a number or a shape in another form
    INSIDE = 9  # of one side only, since it lies inside a fused call: not missing, not comparable


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedRows:
    """What the tensors of a call of attention show: `hidden` of `count` rows of its result have a mask that leaves them no
    position, and whether all other rows agree."""

    hidden: int
    count: int
    others_agree: bool


class Verdict(IntEnum):
    """What the column "Accuracy Reached or Not" says; ordered by severity."""

    YES = 0
    NA = 1
    WARNING = 2
    NO = 3


VERDICT_WORDS: Final = ("yes", "n/a", "warning", "no")


class Class(IntEnum):
    """What a node is in the story of the divergence (docs/verdicts.md)."""

    EXACT = 0
    BENIGN = 1
    UNKNOWN = 2
    STRUCTURAL = 3
    CONTAINS = 4
    PROPAGATED = 5
    AMPLIFIER = 6
    NONFINITE = 7
    ORIGIN = 8


CLASS_WORDS: Final = (
    "exact", "benign", "unknown", "structural", "contains", "propagated", "amplifier", "nonfinite", "origin",
)  # fmt: skip

CAUSES: Final = (Class.NONFINITE, Class.ORIGIN)
"""Classes of a node that caused something; the first where it made NaN or infinity of finite inputs."""

ERROR_BINS: Final = np.arange(-16, 5, dtype=np.int64)
"""Left edges, as powers of ten, of the error histograms. Bin 0 of a stored histogram counts errors that are exactly zero,
bin 1 errors below 1e-16, bin k+2 errors in [10**ERROR_BINS[k], 10**(ERROR_BINS[k]+1)); the last one is open above."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePairs:
    """Matched and unmatched nodes of one step and rank, in the target's execution order, golden-only ones in place.

    target, golden: node numbers in each side's RankDump, -1 where there is no partner
    confidence: 0..1, 1 for an exact name; a node without a partner has 0, or 1 where the other side surely made the same
        call and did not dump it (risk level, list or level of the two dumps differ); a call inside a fused one has the
        fused pair's
    leftover: Leftover of a node without a partner; beside: the node pair that this is told from, -1 where there is none
    """

    target: Int32
    golden: Int32
    method: Int8
    confidence: Float64
    leftover: Int8
    beside: Int32

    def __len__(self) -> int:
        return len(self.target)


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemPairs:
    """Item pairs grouped by node pair (`pair` never decreases); order inside: inputs, kwargs, parameters, outputs."""

    pair: Int32
    target: Int32
    golden: Int32

    def __len__(self) -> int:
        return len(self.pair)


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorFacts:
    """Measurements of one tensor pair of equal shape. Formulas, units and edge cases: docs/metrics.md.

    Numbers that do not apply are None; numbers may be nan or inf where the formula says so.
    worst_index: multi-index of the largest absolute error among positions finite on both sides
    abs_histogram, rel_histogram: int64 counts, len(ERROR_BINS) + 2 bins (see ERROR_BINS), positions finite on both sides
    """

    elements: int
    unequal: int
    cosine: float | None
    euclidean: float | None
    max_abs: float | None
    max_rel: float | None
    ratio_1e3: float | None
    ratio_5e3: float | None
    rel_l2: float | None
    max_ulp: float | None
    median_ulp: float | None
    nonfinite_target: int
    nonfinite_golden: int
    nonfinite_disagree: int
    worst_index: tuple[int, ...] | None = None
    worst_target: float | int | str | None = None
    worst_golden: float | int | str | None = None
    abs_histogram: tuple[int, ...] = ()
    rel_histogram: tuple[int, ...] = ()


TENSOR_METRICS: Final = (
    "cosine", "euclidean", "max_abs", "max_rel", "ratio_1e3", "ratio_5e3", "rel_l2", "max_ulp", "median_ulp",
)  # fmt: skip
"""Metrics that are measured and stored, in the order of their columns in `Facts.tensor` and of their state bits in every stored
database: append only. Look a column up by name (`Facts.metric`). What each is: `metrics.table`."""

COUNTS: Final = ("elements", "unequal", "nonfinite_target", "nonfinite_golden", "nonfinite_disagree")
"""Numbers of positions that a pair of tensors is measured by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Measurements of every item pair; arrays have shape (n,) or (n, 4) and follow ItemPairs.

    diff: target - golden per statistic (Max, Min, Mean, Norm); rel: abs(diff / golden)
    diff_state, rel_state: State per number (ABSENT where a side has no such statistic)
    equal: 1 bit-equal as far as stored (hash, tensor bytes, or every statistic), 0 different, -1 not known
    tensor: (n, len(TENSOR_METRICS)) with tensor_state; all ABSENT where tensors were not read
    elements, unequal, nonfinite_*: counts, -1 where not known
    details: worst element and histograms per item pair that was read as tensors
    errors: item pair -> what could not be read and why
    distances: from the absolute reference, None where there is none
    """

    outcome: Int8
    equal: Int8
    dtype_differs: Int8
    diff: Float64
    diff_state: UInt8
    rel: Float64
    rel_state: UInt8
    tensor: Float64
    tensor_state: UInt8
    elements: Int64
    unequal: Int64
    nonfinite_target: Int64
    nonfinite_golden: Int64
    nonfinite_disagree: Int64
    details: dict[int, TensorFacts] = field(default_factory=dict)
    errors: dict[int, str] = field(default_factory=dict)
    distances: Distances | None = None

    def __len__(self) -> int:
        return len(self.outcome)

    def metric(self, name: str) -> Float64:
        """The column of `tensor` that holds one of TENSOR_METRICS; shape (n,)."""
        column: Float64 = self.tensor[:, TENSOR_METRICS.index(name)]
        return column

    def metric_state(self, name: str) -> UInt8:
        """State of every number of `metric`; shape (n,)."""
        column: UInt8 = self.tensor_state[:, TENSOR_METRICS.index(name)]
        return column


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemOpinions:
    """Verdict per item pair. score: error in units of its floor (1.0 = floor, 0 = equal, inf = cannot be excused);
    nan where nothing was compared. rule: code into `verdict.rules`. standing: only where there is a reference; the score is
    then the target's distance from it."""

    verdict: Int8
    rule: Int8
    score: Float64
    standing: Standing | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How differences went on inside a unit: `reader` received what `maker` made, both node pairs, in the order of the readers;
    a maker stands before its readers. differs: by node pair, what it received or made differs"""

    reader: Int32
    maker: Int32
    differs: Bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeOpinions:
    """Verdict and class per node pair. in_score/out_score: worst item score on each side, nan where none was compared.
    spread: how differences went on, None where that was not looked at"""

    verdict: Int8
    cls: Int8
    in_score: Float64
    out_score: Float64
    spread: Spread | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """A rank that received what an origin on another rank spoiled. node: the call through which"""

    rank: int
    node: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """One independent cause. kind: computation, weight, input, overflow, communication, structure, accumulated, configuration.

    explains: further node pairs of its unit that differ because of it, as far as data flow tells; path: names of the nodes from
    it to the first No that it reaches, both included, [] if it reaches none; spread: other ranks that it reaches, in order
    ranks: all ranks on which the same call goes wrong alike, its own the first; [] where only its own does
    steps: later steps in which the same call goes wrong again on the same rank, in order
    module: path and class of the module around the call, "layers.1.attn.Attn", of the node itself where it is one; "" without one
    group: further node pairs of the same cause, at most GROUP
    """

    step: int
    rank: int
    node: str
    kind: str
    confidence: float
    evidence: str
    advice: str
    stack: list[str]
    explains: int = 0
    path: list[str] = field(default_factory=list)
    spread: list[Reached] = field(default_factory=list)
    ranks: list[int] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    module: str = ""
    pair: int = -1  # node pair number inside its step and rank
    evidence_said: list[Phrase] = field(default_factory=list)  # the same as phrases
    advice_said: list[Phrase] = field(default_factory=list)
    group: list[int] = field(default_factory=list)

    @property
    def second(self) -> bool:
        """Whether it stands behind another cause and does not follow from it."""
        return any(one["id"] in SECOND for one in self.evidence_said)

    @property
    def hidden(self) -> bool:
        """Whether the difference is only first seen here: what caused it was not dumped."""
        return any(one["id"] in HIDDEN for one in self.evidence_said)

    @property
    def unseen_loss(self) -> bool:
        """Whether a loss, or what stands between it and the recorded calls, is at fault, and no call that was recorded."""
        return any(one["id"] in UNSEEN_LOSS for one in self.evidence_said)


UNSEEN_LOSS: Final = frozenset({"origin.unseen_loss", "origin.unseen_loss_later"})
"""Sentences of a gradient that something outside of all that was recorded made."""

HIDDEN: Final = frozenset({"origin.hidden", "origin.hidden_after"}) | UNSEEN_LOSS
"""Sentences that say so; a stored answer has nothing else to tell it by."""

SECOND: Final = frozenset({"origin.second", "origin.second_born", "origin.second_statistics"})
"""Sentences of a second cause."""

GROUP: Final = 1000
"""Node pairs of one cause that are kept."""

SuspectKind = Literal["origin", "second", "amplifier", "steep", "structure", "setting", "blind"]
"""Why a call is a suspect: it is an origin, or one behind another; made an error much larger, or larger; exists on one side only.
A setting names no call. blind: no suspect, but the call behind which nothing can be judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """A call to look at. times: its output's error divided by its input's, as both are shown; None where one is not known, or 0
    count: calls that it stands for, one after the other, or that lie behind it; pair: node pair number, -1 without a call
    stack: the line that makes the call, [] where it is not known; why_said: one sentence"""

    kind: SuspectKind
    step: int
    rank: int
    node: str
    pair: int
    why: str
    why_said: list[Phrase]
    times: float | None = None
    count: int = 1
    module: str = ""
    stack: list[str] = field(default_factory=list)


HIGH: Final = 0.8
MEDIUM: Final = 0.5
"""Lowest confidences that are called high and medium."""


def confidence_word(confidence: float) -> Literal["high", "medium", "low"]:
    """How sure an origin is, in a word."""
    return "high" if confidence >= HIGH else "medium" if confidence >= MEDIUM else "low"


KINDS: Final = (
    "computation", "weight", "input", "overflow", "communication", "structure", "accumulated", "configuration",
)  # fmt: skip
"""Kinds of origins, as the contract spells them."""


def unmatched_sentence(word: str, beside: str | None) -> list[Phrase]:
    """Why a call has no partner. word: one of LEFTOVER_WORDS; beside: the call before it, None at the beginning of the run"""
    if word not in LEFTOVER_WORDS:
        raise ValueError(word)
    return [phrase(f"leftover.{word}", beside=beside if beside is not None else [phrase("leftover.beginning")])]
