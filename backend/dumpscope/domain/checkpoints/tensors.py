"""Tensors of a checkpoint, as descriptions of where their bytes are."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Final, Literal

from numpy.typing import NDArray

from dumpscope.errors import Problem

Raw = NDArray[Any]
Shape = tuple[int, ...]

Section = Literal["weights", "optimizer", "other"]
SECTIONS: Final[tuple[Section, ...]] = ("weights", "optimizer", "other")

Kind = Literal["safetensors", "torch", "sharded", "distributed", "megatron", "deepspeed"]
"""Form of a checkpoint: one file of either kind, a folder of shards, torch's distributed checkpoint, Megatron's or DeepSpeed's
folder."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Piece:
    """One stored part of a tensor.

    place: index of its first element in the whole; None for a shard, whose place is found from the shapes of both sides
    read: gives it as a read-only array, over the mapped file where that is possible; raises TensorError
    source: file that holds it; stored: what two names of one storage have in common
    """

    shape: Shape
    place: Shape | None
    read: Callable[[], Raw]
    source: str
    stored: Hashable = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CheckpointTensor:
    """One tensor of a checkpoint; nothing of its elements is in memory.

    name: as the checkpoint has it; parameter: the parameter it belongs to (its name, but for the state of an optimizer);
    slot: what the optimizer keeps ("exp_avg"), "" for a weight
    dtype: torch's name; shape: of the whole, of the first shard where the shards are not placed
    problem: why it cannot be read, None where it can
    """

    name: str
    dtype: str
    shape: Shape
    pieces: tuple[Piece, ...]
    section: Section = "weights"
    parameter: str = ""
    slot: str = ""
    problem: str | None = None

    @property
    def sharded(self) -> bool:
        """Whether its pieces still have to be placed."""
        return any(piece.place is None for piece in self.pieces)

    @property
    def source(self) -> str:
        """Files that hold it."""
        return ", ".join(dict.fromkeys(piece.source for piece in self.pieces))


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """What a path holds: tensors by name, in the order of the files."""

    path: str
    kind: Kind
    tensors: tuple[CheckpointTensor, ...]
    problems: tuple[Problem, ...] = ()
