"""Wire models: what travels, as OpenAPI describes it. docs/rest.md explains them."""

from __future__ import annotations

from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

Real = Annotated[
    int | float | str | None,
    Field(
        description='A number; "nan", "inf" or "-inf"; an integer above 2^53 as decimal text; null where there is none.'
    ),
]
DumpId = Annotated[str, Field(pattern=r"^[0-9A-Za-z_-]{1,64}$")]
VerdictWord = Literal["yes", "n/a", "warning", "no"]
Row = TypeVar("Row")


class Wire(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Phrase(Wire):
    """A sentence as data: id of its template (docs/rest.md), and a count, written number, name or enumeration per placeholder."""

    id: str
    values: dict[str, int | str | list[Phrase]]


class Error(Wire):
    error: str
    detail: str
    hint: str | None
    status: int
    kind: str | None = None
    said: list[Phrase] | None = None
    hint_said: list[Phrase] | None = None


class Page(Wire, Generic[Row]):
    """`next` is null on the last page; `prev` only appears where a list can be walked backwards; `start` is the place of
    the first item in the whole list, null where that would have to be counted."""

    items: list[Row]
    next: str | None
    total: int
    prev: str | None = None
    start: int | None = None


class Health(Wire):
    """results: files of which the server shows copies: what is changed ends with it"""

    version: str
    database: Literal["sqlite", "postgresql"]
    executor: str
    results: list[str]
    status: Literal["ok"]


class Problem(Wire):
    loc: str
    kind: str
    message: str
    said: Phrase | None = None


class Accepted(Wire):
    id: str
    job: str


class Dump(Wire):
    id: str
    name: str
    path: str
    status: Literal["pending", "ready", "failed"]
    job: str | None
    error: Error | None
    framework: str | None
    task: str | None
    level: str | None
    summary: str | None
    steps: list[int]
    ranks: list[int]
    nodes: int
    items: int
    bytes: int
    created: str
    problems: list[Problem]


class Leaf(Wire):
    """`value` is JSON text: the value of a non-tensor, or a tensor's further keys."""

    name: str
    role: str
    path: str
    type: str | None
    dtype: str | None
    shape: list[int] | None
    max: Real
    min: Real
    mean: Real
    norm: Real
    requires_grad: bool | None
    md5: str | None
    value: str | None
    data_name: str | None


class DumpNodeRow(Wire):
    ordinal: int
    name: str
    kind: str
    direction: str
    order: int


class TreeCounts(Wire):
    no: int
    warning: int
    yes: int
    na: int
    origin: int


class TreeRow(Wire):
    """`nodes`: dumped nodes (node pairs) of the subtree; `match`, `confidence`, `leftover`: as in `NodeRow`, null where nothing
    was dumped. A dump's tree has neither verdict nor match nor counts."""

    entry: int
    name: str
    address: str
    label: str
    parent: int | None
    order: int
    kind: Literal["module", "api", "gradient", "debug", "other", "virtual"]
    direction: Literal["forward", "backward", "none"]
    children: int
    nodes: int
    verdict: VerdictWord | None
    cls: str | None
    match: str | None
    confidence: float | None
    leftover: str | None
    counts: TreeCounts | None


class TreePath(Wire):
    path: list[int]


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


class OriginBrief(Wire):
    node: str
    kind: str
    step: int
    rank: int


class Comparison(Wire):
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
    origin: OriginBrief | None
    created: str
    options: dict[str, Any]
    reference: str | None
    reference_name: str | None


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
    stack: list[str]


class Reached(Wire):
    """A rank that received what an origin on another one spoiled, and the call through which."""

    rank: int
    node: str


class Origin(Wire):
    step: int
    rank: int
    node: str
    kind: str
    confidence: float
    confidence_word: Literal["high", "medium", "low"]
    evidence: str
    advice: str
    evidence_said: list[Phrase]
    advice_said: list[Phrase]
    explains: int
    path: list[str]
    ranks: list[int]
    spread: list[Reached]
    stack: list[str]
    pair: int


class Origins(Wire):
    items: list[Origin]


class UnitBrief(Wire):
    """One step and rank; `verdict` is its worst node pair's, `no` and `origins` count node pairs."""

    step: int
    rank: int
    verdict: VerdictWord
    no: int
    origins: int
    inferred: bool


class GoldenOff(Wire):
    """A call at which the golden went wrong; `ratio` is its distance from the reference by the target's."""

    step: int
    rank: int
    node: str
    target: Real
    golden: Real
    ratio: Real
    measure: Literal["bulk", "peak"]
    stack: list[str]
    pair: int


class Reference(Wire):
    """Item pairs by which side is farther from the reference, and the golden's own causes."""

    side: Side
    target_farther: int
    golden_farther: int
    alike: int
    not_measured: int
    golden_off: list[GoldenOff]


class Summary(Wire):
    """`problems` holds at most 200 of `problem_count`; `reference` is null where the comparison has none."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    schema_: Annotated[int, Field(alias="schema", serialization_alias="schema")]
    mode: str
    policy: str
    target: Side
    golden: Side
    counts: Counts
    first_no: FirstNo | None
    origins: list[Origin]
    problems: list[Problem]
    problem_count: int
    settings: list[str]
    settings_said: list[Phrase]
    classes: dict[str, int]
    units: list[UnitBrief]
    reference: Reference | None


class Standing(Wire):
    """Distances from the reference; `ratio` is the target's by the golden's, `inverse` the golden's by the target's, distances
    below the floor counting as the floor; `measure`: relative L2 (bulk), or that of the largest element (peak)."""

    target: Real
    golden: Real
    measure: Literal["bulk", "peak"]
    ratio: Real
    inverse: Real


class NodeRow(Wire):
    """`address`: what names the row alone: its name, or `golden:` and that where the target has another node of the same name;
    `leftover`: why the call has no partner, null where it has one; `beside`: the call that this is told from; `standing`: of
    the output that decides, null where no reference was measured."""

    pair: int
    order: int
    name: str
    address: str
    golden_name: str | None
    match: str
    confidence: float
    leftover: str | None
    beside: str | None
    kind: str
    direction: str
    api: str | None
    verdict: VerdictWord
    cls: str
    in_score: Real
    out_score: Real
    in_error: Real
    out_error: Real
    entry: int
    standing: Standing | None


class Pair(Wire):
    id: int
    node: str
    target: str | None
    golden: str | None
    role: str
    match: str
    verdict: VerdictWord
    rule: str
    score: Real
    message: str
    target_leaf: Leaf | None
    golden_leaf: Leaf | None
    metrics: dict[str, Real]
    producer: str | None
    standing: Standing | None


class PairDetail(Wire):
    """`bins`: lower edge of each histogram bin; the first counts errors that are exactly zero, the second those below 1e-16."""

    worst_index: list[int] | None
    worst_target: Real
    worst_golden: Real
    abs_histogram: list[int]
    rel_histogram: list[int]
    bins: list[float]


class PairWithDetail(Pair):
    detail: PairDetail | None
    message_said: list[Phrase]


class Figure(Wire):
    """`log`: how it was drawn."""

    figure: dict[str, Any] | None
    log: bool
    text: str
    missing: str | None
    said: list[Phrase]


class Job(Wire):
    id: str
    kind: Literal["ingest", "compare", "rejudge", "precheck"]
    subject: str
    status: Literal["queued", "running", "done", "failed", "cancelled"]
    progress: float
    message: str
    said: list[Phrase] | None = None
    eta: float | None
    error: Error | None
    created: str
    started: str | None
    finished: str | None
