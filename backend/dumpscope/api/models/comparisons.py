"""Models of a comparison, its summary and its origins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any, Final, Literal

from pydantic import AliasChoices, BeforeValidator, Field

from dumpscope.analysis.ranks.strays import Stray as RankStray
from dumpscope.api.models.base import (
    CalledAt,
    Error,
    FramesOfStack,
    Moment,
    Phrase,
    Problems,
    Real,
    Stack,
    VerdictWord,
    Wire,
    first,
    moment,
)
from dumpscope.domain.facts import CAUSES, CLASS_WORDS, confidence_word
from dumpscope.domain.result import Answer
from dumpscope.export.document import coverage_document
from dumpscope.index.comparisons.catalogue import ComparisonRow, StoredUnit

ORIGINS: Final = 100
"""Origins sent at once."""

REACHED: Final = 64
"""Ranks sent with an origin that it reached: the page names eight, and of a thousand the reply would exceed 200 kB."""

ENDS: Final = 100
"""Ends of records sent at once."""

NAMED_POLICY: Final = 60
"""A longer policy text is the content of a file, not a name."""


def _confidence_word(confidence: float | str) -> str:
    return confidence if isinstance(confidence, str) else confidence_word(confidence)


ConfidenceWord = Annotated[
    Literal["high", "medium", "low"],
    BeforeValidator(_confidence_word),
    Field(validation_alias=AliasChoices("confidence_word", "confidence")),
]


class Counts(Wire):
    nodes: int
    items: int
    yes: int
    no: int
    warning: int
    not_comparable: int
    unmatched_target: int
    unmatched_golden: int
    unreadable: int


OutcomeWord = Literal["agrees", "diverged", "not_fully_judged"]
"""The three forms of an answer."""


class Reason(Wire):
    """Items with one reason; `missing`: they matter and were not judged."""

    reason: str
    group: Literal["judged", "one_sided", "unreadable", "not_comparable", "left_out"]
    items: int
    missing: bool


class Unjudged(Wire):
    """The first call from which on something that matters was not judged."""

    step: int
    rank: int
    node: str
    pair: int
    reason: str
    sentence: str
    said: list[Phrase]


class End(Wire):
    """The record of a side ends at `node`; the other side goes on with `following`."""

    side: Literal["target", "golden"]
    step: int
    rank: int
    node: str
    following: str
    items: int


class Coverage(Wire):
    """How many recorded items were judged, and why others were not; the five groups add up to `items`."""

    items: int
    judged: int
    one_sided: int
    unreadable: int
    not_comparable: int
    left_out: int
    missing: int
    lost: int
    reasons: list[Reason]
    first: Unjudged | None
    ends: Annotated[list[End], BeforeValidator(first(ENDS))]


class OriginBrief(Wire):
    node: str
    kind: str
    step: int
    rank: int


class Growing(Wire):
    """A side that was still being written when it was compared: its newest step, and the calls in it, if a journal told."""

    side: Literal["target", "golden"]
    step: int | None
    calls: int | None


class Comparison(Wire):
    """`watched`: made by a watch, which compares again when new steps come; `growing`: sides of which a beginning was there"""

    id: str
    name: str
    status: Literal["pending", "running", "done", "failed", "cancelled"]
    job: str | None
    error: Error | None
    target: str
    golden: str
    target_name: str
    golden_name: str
    policy: str
    mode: str | None
    counts: Counts | None
    verdict: VerdictWord | None
    outcome: OutcomeWord | None
    origin: OriginBrief | None
    created: Moment
    options: dict[str, Any]
    reference: str | None
    reference_name: str | None
    watched: bool = False
    growing: Annotated[list[Growing], Field(default_factory=list)]


class Side(Wire):
    path: str
    framework: str
    task: str
    level: str
    steps: list[int]
    ranks: list[int]


class FirstNo(Wire):
    step: int
    rank: int
    node: str
    item: str
    metrics: dict[str, Real]
    reason: str
    reason_said: list[Phrase]
    stack: Stack
    frames: FramesOfStack
    called_at: CalledAt


class Reached(Wire):
    """A rank that received wrong data caused by an origin on another rank, and the call through which it came."""

    rank: int
    node: str


class Origin(Wire):
    """`hidden`: the difference is first visible here, but its cause was not dumped. `module`: path and class of the module around
    the call, `called_at`: the innermost line that is neither torch's nor a framework's; both "" where that is not known.
    `steps`: later steps in which the same call goes wrong again on the same rank; `spread`: the first 64 ranks it reached."""

    step: int
    rank: int
    node: str
    kind: str
    confidence: float
    confidence_word: ConfidenceWord
    evidence: str
    advice: str
    evidence_said: list[Phrase]
    advice_said: list[Phrase]
    explains: int
    path: list[str]
    ranks: list[int]
    steps: list[int]
    spread: Annotated[list[Reached], BeforeValidator(first(REACHED))]
    stack: Stack
    frames: FramesOfStack
    called_at: CalledAt
    module: str
    pair: int
    hidden: bool


class Origins(Wire):
    items: Annotated[list[Origin], BeforeValidator(first(ORIGINS))]


class UnitBrief(Wire):
    """One step and rank; `verdict` is its worst node pair's, `no` and `origins` count node pairs."""

    step: int
    rank: int
    verdict: VerdictWord
    no: int
    origins: int
    inferred: bool


class Stray(Wire):
    """A rank with far more calls that are No (`no`) than is usual in its step: `usual` is the median of the `others`. `node`: its
    first call that is No."""

    step: int
    rank: int
    no: int
    usual: int
    others: int
    node: str


class GoldenOff(Wire):
    """A call at which the golden went wrong; `ratio` is its distance from the reference by the target's."""

    step: int
    rank: int
    node: str
    target: Real
    golden: Real
    ratio: Real
    measure: Literal["bulk", "peak"]
    stack: Stack
    frames: FramesOfStack
    pair: int


class Reference(Wire):
    """Item pairs by which side is farther from the reference, and the golden's own causes."""

    side: Side
    target_farther: int
    golden_farther: int
    alike: int
    not_measured: int
    golden_off: Annotated[list[GoldenOff], BeforeValidator(first(ORIGINS))]


class Summary(Wire):
    """`problems` holds at most 200 of `problem_count`; `reference` is null if the comparison has none; `nothing_met`: both
    sides hold items, and none has a partner; `most_unmatched`: more than half of the calls have none; `coverage` is null in a
    result of an older version; `older`: that version found no suspects and kept nothing of what inherits a difference."""

    schema_: Annotated[int, Field(alias="schema", serialization_alias="schema")]
    mode: str
    policy: str
    target: Side
    golden: Side
    counts: Counts
    nothing_met: bool
    most_unmatched: bool
    first_no: FirstNo | None
    origins: Annotated[list[Origin], BeforeValidator(first(ORIGINS))]
    problems: Problems
    problem_count: int
    settings: list[str]
    settings_said: list[Phrase]
    classes: dict[str, int]
    units: list[UnitBrief]
    strays: list[Stray]
    reference: Reference | None
    outcome: OutcomeWord
    coverage: Coverage | None
    older: bool


def comparison(row: ComparisonRow) -> Comparison:
    """A comparison as it appears in the list."""
    answer = row.answer
    return Comparison(
        id=row.id,
        name=row.name,
        status=row.status,  # type: ignore[arg-type]
        job=row.job,
        error=None if row.error is None else Error(**row.error),
        target=row.target,
        golden=row.golden,
        target_name=row.target_name,
        golden_name=row.golden_name,
        policy=answer.policy if answer else _policy_name(row.options.policy),
        mode=row.mode,
        counts=Counts.model_validate(answer.counts) if answer else None,
        verdict=row.verdict,  # type: ignore[arg-type]
        outcome=answer.outcome if answer else None,  # type: ignore[arg-type]
        origin=OriginBrief.model_validate(answer.origins[0]) if answer and answer.origins else None,
        created=moment(row.created),
        options=row.options.to_json(),
        reference=row.reference,
        reference_name=row.reference_name,
        watched=row.watched,
        growing=[Growing.model_validate(one) for one in row.growing],
    )


def _policy_name(text: str) -> str:
    return text if len(text) <= NAMED_POLICY and "\n" not in text else "custom"


def summarize(answer: Answer, units: Sequence[StoredUnit], strays: Sequence[tuple[RankStray, str]]) -> Summary:
    """The result of a comparison. units: all its units, with their counts; strays: the odd ranks, with the first call that is
    No of each"""
    classes: dict[str, int] = {}
    for unit in units:
        for word, count in unit.counts["classes"].items():
            classes[word] = classes.get(word, 0) + count
    return Summary.model_validate({
        "schema": 1,
        **{name: getattr(answer, name) for name in _ANSWERED},
        "nothing_met": answer.counts.nothing_met,
        "coverage": None if answer.coverage is None else coverage_document(answer.coverage),
        "most_unmatched": 2 * classes.get("structural", 0) > answer.counts.nodes,
        "problem_count": len(answer.problems),
        "classes": classes,
        "units": [
            {
                "step": unit.step,
                "rank": unit.rank,
                "verdict": unit.verdict,
                "no": unit.counts["no"],
                "origins": sum(unit.counts["classes"][CLASS_WORDS[cause]] for cause in CAUSES),
                "inferred": unit.inferred,
            }
            for unit in units
        ],
        "strays": [{**asdict(stray), "node": node} for stray, node in strays],
    })  # fmt: skip


_ANSWERED: Final = (
    "mode", "policy", "target", "golden", "counts", "first_no", "origins", "problems", "settings", "settings_said",
    "reference", "outcome", "older",
)  # fmt: skip
"""Fields of a summary that an answer has under the same name."""
