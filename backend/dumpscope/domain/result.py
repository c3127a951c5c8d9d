"""The result of one comparison: per (step, rank) unit the columns, over all units the answer."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from dumpscope.domain.context import Context
from dumpscope.domain.coverage import AGREES, DIVERGED, LOST, NOT_FULLY_JUDGED, Coverage
from dumpscope.domain.facts import Facts, ItemOpinions, ItemPairs, NodeOpinions, NodePairs, Origin, Suspect
from dumpscope.domain.joined import Joined, JoinedUnit
from dumpscope.domain.records import Header, Int32, RankDump
from dumpscope.errors import Problem
from dumpscope.texts import Phrase


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultTree:
    """Module tree of a unit over both sides. One entry per node pair plus virtual parents.

    parent: entry number or -1; order: place in time (parents before children); pair: node pair number or -1 (virtual)
    """

    names: list[str]
    parent: Int32
    order: Int32
    pair: Int32
    inferred: bool

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredUnit:
    """One step and rank of a comparison, matched and measured: everything that opinions are formed on.

    context: what `domain.context.gather` makes of both sides; gathered once, and kept as long as the unit
    reference: header of the rank it was measured against, in the process that did
    joined: what its ranks were joined from, in the process that did
    """

    step: int
    rank: int
    target: RankDump
    golden: RankDump
    mode: str
    pairs: NodePairs
    items: ItemPairs
    tree: ResultTree
    context: Context
    facts: Facts
    reference: Header | None = None
    joined: JoinedUnit | None = None
    problems: list[Problem] = field(default_factory=list)

    def with_opinions(self, items: ItemOpinions, nodes: NodeOpinions) -> Unit:
        """The unit judged; opinions that it had are left behind."""
        measured = {one.name: getattr(self, one.name) for one in fields(MeasuredUnit)}
        return Unit(**measured, item_opinions=items, node_opinions=nodes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit(MeasuredUnit):
    """A measured unit with opinions: a verdict per item pair, a verdict and a class per node pair."""

    item_opinions: ItemOpinions
    node_opinions: NodeOpinions


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Items by verdict over all units (contract: `counts`); nodes counts node pairs, unreadable counts item pairs."""

    nodes: int = 0
    items: int = 0
    yes: int = 0
    no: int = 0
    warning: int = 0
    not_comparable: int = 0
    unmatched_target: int = 0
    unmatched_golden: int = 0
    unreadable: int = 0

    @property
    def judged(self) -> int:
        """Items of both sides that got a verdict."""
        return self.yes + self.no + self.warning

    @property
    def nothing_met(self) -> bool:
        """Both sides hold items, yet no item of one met one of the other."""
        matched = self.items - self.unmatched_target - self.unmatched_golden
        return matched == 0 and self.unmatched_target > 0 and self.unmatched_golden > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstNo:
    """First item with verdict No in the target's execution order; of several ranks that of the earliest call."""

    step: int
    rank: int
    node: str
    item: str
    metrics: dict[str, float | int | str | None]
    reason: str
    stack: list[str]
    reason_said: list[Phrase] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    path: str
    framework: str
    task: str
    level: str
    steps: list[int]
    ranks: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldenOff:
    """A node at which the golden went wrong. Distances from the reference; ratio: golden by target; pair: node pair number"""

    step: int
    rank: int
    node: str
    target: float
    golden: float
    ratio: float
    measure: str
    stack: list[str]
    pair: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """The third dump of a comparison. Item pairs by who is farther from it; golden_off: causes of the golden's own"""

    side: Side
    target_farther: int = 0
    golden_farther: int = 0
    alike: int = 0
    not_measured: int = 0
    golden_off: list[GoldenOff] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What `compare --json` and `/summary` say (docs/rest.md), before it is written as JSON.

    settings: how the two dumps were taken differently (dtype, task, level...), one sentence each; settings_said: the same
    joined: where ranks were joined, which and how
    coverage: what was judged and what not; None in an answer of an older version
    suspects: calls to look at beside the origins, by step and rank, the most telling first
    older: stored by a version that kept neither suspects nor what inherits a difference
    """

    mode: str
    policy: str
    target: Side
    golden: Side
    counts: Counts
    first_no: FirstNo | None
    origins: list[Origin]
    settings: list[str]
    problems: list[Problem]
    settings_said: list[Phrase] = field(default_factory=list)
    reference: Reference | None = None
    joined: Joined | None = None
    coverage: Coverage | None = None
    suspects: list[Suspect] = field(default_factory=list)
    older: bool = False

    @property
    def diverged(self) -> bool:
        return bool(self.origins) or self.counts.no > 0

    @property
    def incomplete(self) -> bool:
        """Something that matters was not judged: items, or parts of the input that no item stands for."""
        if self.counts.unreadable or self.counts.nothing_met:
            return True
        if self.coverage is not None:
            return not self.coverage.complete
        return any(problem.kind in LOST for problem in self.problems)

    @property
    def outcome(self) -> str:
        """One of three forms. A divergence counts more than what was not judged: it is real whatever is missing."""
        if self.diverged:
            return DIVERGED
        return NOT_FULLY_JUDGED if self.incomplete else AGREES

    @property
    def compared_nothing(self) -> bool:
        """Whether no item met a partner, or no tensor could be compared with its one."""
        return self.counts.nothing_met or any(problem.kind == "nothing_compared" for problem in self.problems)
