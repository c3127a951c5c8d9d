"""Models of comparisons of checkpoints."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from dumpscope.api.models.base import Error, Moment, Phrase, Problem, Real, Wire
from dumpscope.domain.checkpoints.differences import STATES
from dumpscope.index.checkpoints.catalogue import CheckpointDiffRow
from dumpscope.index.checkpoints.tensors import StoredTensor
from dumpscope.texts import english

Path = Annotated[str, Field(min_length=1, max_length=4096)]
Rename = Annotated[str, Field(min_length=3, max_length=2000)]
State = Literal["differs", "form", "target_only", "golden_only", "unreadable", "rounding", "equal_cast", "equal"]
Kind = Literal["safetensors", "torch", "sharded", "distributed", "megatron", "deepspeed"]


class NewCheckpointDiff(BaseModel):
    """Paths of two checkpoints below a root: a file, or a folder of shards, of torch's distributed checkpoint or of Megatron.
    rename: PATTERN=REPLACEMENT over the target's names (docs/checkpoints.md)."""

    model_config = ConfigDict(extra="forbid")

    target: Path
    golden: Path
    name: Annotated[str, Field(min_length=1, max_length=500)] | None = None
    rename: Annotated[list[Rename], Field(max_length=100)] = []


class CheckpointDiff(Wire):
    """`summary`: what came out, in a sentence, null until there is a result; `said`: the same as phrases; `total`: its tensors"""

    id: str
    name: str
    target: str
    golden: str
    rename: list[str]
    status: Literal["pending", "done", "failed", "cancelled"]
    job: str | None
    error: Error | None
    created: Moment
    total: int | None
    summary: str | None
    said: list[Phrase] | None


class CheckpointSummary(Wire):
    """`counts`: tensors by state, the worst state first; `rules`: renames that were found; `bytes`: that were compared"""

    target_kind: Kind
    golden_kind: Kind
    summary: str
    said: list[Phrase]
    total: int
    counts: dict[State, int]
    rules: list[str]
    bytes: int
    problems: list[Problem]


class CheckpointTensor(Wire):
    """One tensor of either side, or a pair; docs/checkpoints.md tells states, matches and forms. `number`: place, worst first

    `share`: of the elements that differ, null where nothing was compared; `elements`, `unequal`, `nonfinite_*`: -1 there
    `index`: of the largest difference, with both values; `histogram`: counts of differences by decade (docs/metrics.md)
    """

    number: int
    name: str
    golden: str
    section: Literal["weights", "optimizer", "other"]
    state: State
    match: Literal["exact", "unwrapped", "rule", "renamed", "content", "aligned", "tied", "fused", "none"]
    form: Literal["transposed", "reshaped", "padded", "fused", "shape"] | None
    target_dtype: str | None
    golden_dtype: str | None
    target_shape: list[int] | None
    golden_shape: list[int] | None
    target_source: str
    golden_source: str
    elements: int
    unequal: int
    share: float | None
    max_abs: Real
    max_rel: Real
    cosine: Real
    rel_l2: Real
    max_ulp: Real
    nonfinite_target: int
    nonfinite_golden: int
    index: list[int] | None
    target_value: Real
    golden_value: Real
    histogram: list[int]
    note: str
    note_said: list[Phrase] | None


class CheckpointCounts(Wire):
    """Tensors by state, of those whose name holds the text."""

    counts: dict[State, int]


def checkpoint_diff(row: CheckpointDiffRow) -> CheckpointDiff:
    answer = row.answer or {}
    said = answer.get("said")
    return CheckpointDiff.model_validate(
        {
            "id": row.id,
            "name": row.name,
            "target": row.target,
            "golden": row.golden,
            "rename": row.renames,
            "status": row.status,
            "job": row.job,
            "error": row.error,
            "created": row.created,
            "total": sum(answer["counts"].values()) if answer else None,
            "summary": english(said) if said else None,
            "said": said,
        }
    )


def checkpoint_summary(answer: dict[str, Any]) -> CheckpointSummary:
    counts = {state: answer["counts"].get(state, 0) for state in STATES}
    return CheckpointSummary.model_validate(
        {
            "target_kind": answer["target_kind"],
            "golden_kind": answer["golden_kind"],
            "summary": english(answer["said"]),
            "said": answer["said"],
            "total": sum(counts.values()),
            "counts": counts,
            "rules": answer["rules"],
            "bytes": answer["bytes"],
            "problems": answer["problems"],
        }
    )


def checkpoint_tensor(stored: StoredTensor) -> CheckpointTensor:
    share = None if stored.share < 0 else stored.share
    return CheckpointTensor.model_validate({**stored.facts, "number": stored.number, "share": share})
