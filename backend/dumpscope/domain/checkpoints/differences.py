"""How the tensors of two checkpoints differ (docs/checkpoints.md)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

from dumpscope.domain.checkpoints.tensors import Kind, Section, Shape
from dumpscope.errors import Problem

State = Literal[
    "differs", "form", "target_only", "golden_only", "unreadable", "rounding", "equal_cast", "equal"
]  # fmt: skip
STATES: Final[tuple[State, ...]] = (
    "differs", "form", "target_only", "golden_only", "unreadable", "rounding", "equal_cast", "equal",
)  # fmt: skip
"""What a pair of tensors comes to, the worst first. equal: same dtype, same values; equal_cast: same values in another dtype;
rounding: no farther apart than rounding to the coarser dtype takes them; form: the same name with another shape or layout."""
AGREE: Final[frozenset[State]] = frozenset({"rounding", "equal_cast", "equal"})

Match = Literal["exact", "unwrapped", "rule", "renamed", "content", "aligned", "tied", "fused", "none"]
MATCHES: Final[tuple[Match, ...]] = (
    "exact", "unwrapped", "rule", "renamed", "content", "aligned", "tied", "fused", "none",
)  # fmt: skip
"""How two tensors were found to be the same one: by name; without words of wrappers; by a rule of the user; by a prefix that many
tensors change alike; by their bytes; by words and shapes; as one tensor under two names; as parts of one."""

Form = Literal["transposed", "reshaped", "padded", "fused", "shape"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorDifference:
    """One line of a result: a tensor of the target, of the golden, or a pair.

    name: of the target, of the golden where only that has it; golden: names of the golden's, joined by " + " where several are
        fused in the target's one, "" without one
    elements, unequal: compared elements, and those that differ; -1 where nothing was compared
    nonfinite_target, nonfinite_golden: NaN and infinities; -1 where not counted
    index: of the largest difference; target_value, golden_value: both values there
    histogram: counts of absolute differences by decade (docs/metrics.md), () where nothing differs
    note: one sentence on what else is to be known, "" without one
    severity: order among those of one state, the largest first
    """

    name: str
    golden: str
    section: Section
    state: State
    match: Match
    form: Form | None = None
    target_dtype: str | None = None
    golden_dtype: str | None = None
    target_shape: Shape | None = None
    golden_shape: Shape | None = None
    target_source: str = ""
    golden_source: str = ""
    elements: int = -1
    unequal: int = -1
    max_abs: float | None = None
    max_rel: float | None = None
    cosine: float | None = None
    rel_l2: float | None = None
    max_ulp: float | None = None
    nonfinite_target: int = -1
    nonfinite_golden: int = -1
    index: Shape | None = None
    target_value: float | int | str | None = None
    golden_value: float | int | str | None = None
    histogram: tuple[int, ...] = ()
    note: str = ""
    severity: float = 0.0

    @property
    def module(self) -> str:
        """The module that holds it: its name without the last word."""
        return self.name.rpartition(".")[0]

    @property
    def share(self) -> float | None:
        """Share of the elements that differ, 0..1; None where nothing was compared."""
        return self.unequal / self.elements if self.elements > 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointDiff:
    """Two checkpoints compared: tensors worst first.

    rules: renames that were found, "transformer.h -> model.layers"; bytes_read: stored bytes of what was compared
    """

    target: str
    golden: str
    target_kind: Kind
    golden_kind: Kind
    tensors: tuple[TensorDifference, ...]
    problems: tuple[Problem, ...] = ()
    rules: tuple[str, ...] = ()
    bytes_read: int = 0
    counts: dict[State, int] = field(default_factory=dict)

    @property
    def agrees(self) -> bool:
        """Whether every tensor was compared and none differs."""
        return all(one.state in AGREE for one in self.tensors)

    @property
    def differs(self) -> bool:
        """Whether a difference was found."""
        return any(one.state not in AGREE and one.state != "unreadable" for one in self.tensors)
