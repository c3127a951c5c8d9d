"""Joins shards to whole tensors, and fused tensors' parts to one, as descriptions: no element is read here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from dumpscope.domain.checkpoints.tensors import CheckpointTensor, Piece, Raw, Shape

FUSED: Final[tuple[tuple[frozenset[str], tuple[tuple[str, ...], ...]], ...]] = (
    (
        frozenset({
            "qkv_proj", "qkv", "c_attn", "Wqkv", "query_key_value", "W_pack", "in_proj", "in_proj_weight", "in_proj_bias",
            "linear_qkv", "attn_qkv", "to_qkv",
        }),
        (
            ("q_proj", "k_proj", "v_proj"), ("query", "key", "value"), ("q", "k", "v"), ("wq", "wk", "wv"),
            ("to_q", "to_k", "to_v"), ("q_lin", "k_lin", "v_lin"),
        ),
    ),
    (
        frozenset({"gate_up_proj", "linear_fc1", "w13", "dense_h_to_4h", "w12"}),
        (("gate_proj", "up_proj"), ("w1", "w3"), ("gate", "up"), ("w1", "w2")),
    ),
)  # fmt: skip
"""Words of fused tensors, and of the parts that make them, in their order."""
_ROWS: Final = (
    "linear_proj",
    "linear_fc2",
    "o_proj",
    "down_proj",
    "dense_4h_to_h",
    "attention.dense",
    "self_attention.dense",
)
"""Layers whose inputs are split over ranks: their weights are cut along dimension 1."""
_HALVES: Final = ("linear_fc1", "gate_up_proj", "dense_h_to_4h")
"""Layers whose shards each hold a gate and a value, one after the other."""


def join_shards(tensor: CheckpointTensor, other: CheckpointTensor | None) -> list[CheckpointTensor]:
    """Ways to join the shards of a tensor, the likeliest first; a tensor that is whole is the only way.

    other: the tensor that it is compared with
    """
    if not tensor.sharded:
        return [tensor]
    shapes = [piece.shape for piece in tensor.pieces]
    first = shapes[0]
    if len({len(shape) for shape in shapes}) > 1:
        return [replace(tensor, pieces=(replace(tensor.pieces[0], place=(0,) * len(first)),))]
    wholes = _wholes(other)
    replicas = replace(tensor, pieces=(replace(tensor.pieces[0], place=(0,) * len(first)),), shape=first)
    ways: list[tuple[int, CheckpointTensor]] = []
    for dimension in range(len(first)):
        rest = {shape[:dimension] + shape[dimension + 1 :] for shape in shapes}
        if len(rest) > 1:
            continue
        whole = (*first[:dimension], sum(shape[dimension] for shape in shapes), *first[dimension + 1 :])
        joined = _placed(tensor, dimension, whole)
        if whole in wholes:
            rank = 0
        elif other is None or other.sharded:
            rank = 2
        elif dimension == 0 and _is_longer(whole, wholes):
            rank = 3  # a vocabulary with its padding
        else:
            continue
        likely = dimension == (1 if any(word in tensor.name for word in _ROWS) else 0)
        ways.append((rank * 2 + (not likely), joined))
        if dimension == 0 and any(word in tensor.name for word in _HALVES) and len(first) <= 2:
            ways.append((rank * 2 + (not likely), _by_halves(joined)))
    if first in wholes and (other is None or not other.sharded or _are_norms(tensor.name)):
        ways.append((-1, replicas))
    ways.sort(key=lambda way: way[0])
    return [way for _, way in ways] or [replicas]


def _are_norms(name: str) -> bool:
    return "norm" in name or "linear_proj.bias" in name or "linear_fc2.bias" in name


def is_replica(joined: CheckpointTensor, shards: CheckpointTensor) -> bool:
    """Whether a way to join shards takes all of them for the same tensor."""
    return len(shards.pieces) > 1 == len(joined.pieces) and shards.sharded


def replicas_of(shards: CheckpointTensor) -> list[CheckpointTensor]:
    """The other shards, each as a tensor of its own."""
    return [
        replace(shards, pieces=(replace(piece, place=(0,) * len(piece.shape)),), shape=piece.shape)
        for piece in shards.pieces[1:]
    ]


def _wholes(other: CheckpointTensor | None) -> set[Shape]:
    """Shapes that the other side may have."""
    if other is None or not other.shape:
        return set()
    if not other.sharded:
        return {other.shape}
    found = {piece.shape for piece in other.pieces[:1]}
    for dimension in range(len(other.shape)):
        total = sum(piece.shape[dimension] for piece in other.pieces if len(piece.shape) == len(other.shape))
        found.add((*other.shape[:dimension], total, *other.shape[dimension + 1 :]))
    return found


def _is_longer(whole: Shape, others: set[Shape]) -> bool:
    return any(len(whole) == len(other) and whole[1:] == other[1:] and whole[0] > other[0] for other in others)


def _placed(tensor: CheckpointTensor, dimension: int, whole: Shape) -> CheckpointTensor:
    pieces: list[Piece] = []
    at = 0
    for piece in tensor.pieces:
        place = tuple(at if here == dimension else 0 for here in range(len(whole)))
        pieces.append(replace(piece, place=place))
        at += piece.shape[dimension]
    return replace(tensor, shape=whole, pieces=tuple(pieces))


def _by_halves(joined: CheckpointTensor) -> CheckpointTensor:
    """The first halves of all shards, then the second ones."""
    if any(piece.shape[0] % 2 for piece in joined.pieces):
        return joined
    pieces: list[Piece] = []
    at = 0
    for half in (0, 1):
        for piece in joined.pieces:
            size = piece.shape[0] // 2
            pieces.append(
                replace(
                    piece,
                    shape=(size, *piece.shape[1:]),
                    place=(at, *(0 for _ in piece.shape[1:])),
                    read=_Rows(piece, half * size, (half + 1) * size),
                )
            )
            at += size
    return replace(joined, pieces=tuple(pieces))


class _Rows:
    """Reads some rows of a piece."""

    def __init__(self, piece: Piece, first: int, last: int) -> None:
        self._piece, self._first, self._last = piece, first, last

    def __call__(self) -> Raw:
        return self._piece.read()[self._first : self._last]


def find_parts(fused: str, others: Mapping[str, CheckpointTensor], parent: str) -> list[CheckpointTensor]:
    """The tensors that a fused one is made of, in order; [] where they are not there.

    fused: its name; others: free tensors of the other side by plain name; parent: the other side's name of the module around it
    """
    words = fused.split(".")
    for names, families in FUSED:
        place = next((at for at in range(len(words) - 1, -1, -1) if words[at] in names), None)
        if place is None:
            continue
        end = words[place + 1 :]
        if words[place].endswith(("_weight", "_bias")):
            end = [words[place].rpartition("_")[2]]
        for family in families:
            paths = [".".join([*([parent] if parent else []), part, *end]) for part in family]
            if all(path in others for path in paths):
                return [others[path] for path in paths]
    return []


def fused_parent(name: str) -> str | None:
    """The module around a fused tensor; None where the name is not one of a fused tensor."""
    words = name.split(".")
    for names, _ in FUSED:
        for at in range(len(words) - 1, -1, -1):
            if words[at] in names:
                return ".".join(words[:at])
    return None


def join_parts(parts: Sequence[CheckpointTensor], wanted: Shape) -> CheckpointTensor | None:
    """Tensors side by side as one of the wanted shape; None where their shapes do not add up to it."""
    if any(part.sharded or part.problem or len(part.shape) != len(wanted) for part in parts):
        return None
    for dimension in range(len(wanted)):
        total = sum(part.shape[dimension] for part in parts)
        rest = {part.shape[:dimension] + part.shape[dimension + 1 :] for part in parts}
        if total != wanted[dimension] or rest != {wanted[:dimension] + wanted[dimension + 1 :]}:
            continue
        pieces: list[Piece] = []
        at = 0
        for part in parts:
            for piece in part.pieces:
                place = piece.place or (0,) * len(wanted)
                pieces.append(
                    replace(piece, place=tuple(p + (at if d == dimension else 0) for d, p in enumerate(place)))
                )
            at += part.shape[dimension]
        return replace(parts[0], name=" + ".join(part.name for part in parts), shape=wanted, pieces=tuple(pieces))
    return None


def joined_shape(tensor: CheckpointTensor) -> Shape:
    """Shape of a tensor, of shards joined in the likeliest way."""
    return join_shards(tensor, None)[0].shape


def stored_elements(tensor: CheckpointTensor) -> int:
    """Elements of all pieces."""
    return sum(math.prod(piece.shape) for piece in tensor.pieces)
