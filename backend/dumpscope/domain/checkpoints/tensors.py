"""Tensors of a checkpoint, as descriptions of where their bytes are."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
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


def find_gap(boxes: Sequence[tuple[Shape, Shape]], whole: Shape) -> tuple[Shape, int] | None:
    """The first element that is in no box or in several, and in how many. None where the boxes fill the whole, each once.

    boxes: place of the first element and shape, of as many dimensions as the whole, none beyond its end
    """
    filled = [box for box in boxes if all(box[1])]
    return _find_gap([(*place, *shape) for place, shape in filled], whole, 0) if all(whole) else None


def _find_gap(boxes: list[Shape], whole: Shape, axis: int) -> tuple[Shape, int] | None:
    """The same from a dimension on, in which boxes begin at `box[axis]` and end at `box[axis] + box[axis + dimensions]`."""
    dims = len(whole)
    if axis == dims:
        return None if len(boxes) == 1 else ((), len(boxes))
    cuts = sorted({0, *(box[axis] for box in boxes), *(box[axis] + box[axis + dims] for box in boxes)} - {whole[axis]})
    begun = sorted(boxes, key=lambda box: box[axis])
    here: list[Shape] = []
    at = 0
    for cut in cuts:
        here = [box for box in here if box[axis] + box[axis + dims] > cut]
        while at < len(begun) and begun[at][axis] == cut:
            here.append(begun[at])
            at += 1
        gap = _find_gap(here, whole, axis + 1)
        if gap is not None:
            return (cut, *gap[0]), gap[1]
    return None


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
