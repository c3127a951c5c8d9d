"""Megatron's distributed checkpoints (torch_dist): torch's, with the arguments in `common.pt`, layers that are stacked into one
tensor, and an optimizer whose state has one of these forms:

    fully_reshardable         optimizer.state.exp_avg.NAME, also of an optimizer that is not distributed
    fully_sharded_model_space the same names, and each part of a parameter flat: (2, 1, 96) for 24 x 8 in two parts
    dp_reshardable            optimizer.distributed.dp_group_idx_0.gbuf_idx_0.dtype_(...).bucket_idx_0.exp_avg
    dp_zero_gather_scatter    optimizer.distributed.dp_group_idx_0.param_state, one object

A buffer has no names either, and the filling between its parameters is what happened to be in memory. So which parameter begins
at a place is found by its float32 copy, which rounds to the weight; what is like several weights or none is named by its place.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from dumpscope.domain.checkpoints.tensors import CheckpointTensor, Piece, Raw, Shape
from dumpscope.errors import Problem, TensorError
from dumpscope.readers.checkpoints import distributed, megatron_optimizer, torch_save
from dumpscope.readers.checkpoints.files import Files, problem_of
from dumpscope.readers.checkpoints.inert_pickle import DIALECT, Foreign
from dumpscope.readers.checkpoints.megatron_optimizer import MASTER, number_of, ranks_of
from dumpscope.readers.tensors.torch_file import open_contents
from dumpscope.texts import say

COMMON: Final = "common.pt"
_STACKED: Final = re.compile(r"(?:^|\.)layers\.(?!\d)")
_BUFFER: Final = re.compile(
    r"^(?P<bucket>.*\bdistributed\.dp_group_idx_(?P<group>\d+)\.gbuf_idx_\d+\.dtype_.*\.bucket_idx_\d+)\.(?P<slot>\w+)$"
)
_OBJECT: Final = re.compile(r"^(?P<name>.*\bdistributed\.dp_group_idx_\d+\.param_state)/")
_COPY: Final = "param"
_ALIGNED: Final = 64
_HEAD: Final = 64
"""Elements by which a parameter is known, from both of its ends."""


def read_folder(files: Files) -> tuple[list[CheckpointTensor], list[Problem]]:
    """Tensors of a folder, by the names of the model. Raises TensorError where `.metadata` cannot be read."""
    tensors, problems, others = distributed.read_all(files)
    options: Mapping[Any, Any] = {}
    settings: list[CheckpointTensor] = []
    try:
        options, settings = _common(files)
    except TensorError as error:
        problems.append(problem_of(error, COMMON))
    buckets: dict[str, dict[str, CheckpointTensor]] = {}
    made: list[CheckpointTensor] = []
    for tensor in tensors:
        found = _BUFFER.match(tensor.name)
        if found is None:
            made += _layers(tensor)
        else:
            buckets.setdefault(found["bucket"], {})[found["slot"]] = tensor
    made = _shaped(made)
    if buckets:
        named, damage = _name_buckets(buckets, _Weights(made, options), ranks_of(options))
        made += named
        problems += damage
    for name in dict.fromkeys(found["name"] for one in others if (found := _OBJECT.match(one))):
        packed = TensorError(
            say("checkpoints.megatron_state_in_object"), kind="unsupported", where=name,
            hint=say("checkpoints.save_fully_reshardable"),
        )  # fmt: skip
        problems.append(problem_of(packed))
        lost = CheckpointTensor(
            name=name, dtype="", shape=(), pieces=(), section="optimizer", parameter=name, problem=packed.detail
        )
        made.append(lost)
    return [*made, *settings], problems


def _common(files: Files) -> tuple[Mapping[Any, Any], list[CheckpointTensor]]:
    """Megatron's arguments, and the settings of the optimizer. Raises TensorError."""
    value, read = open_contents(files.content(COMMON), DIALECT, budget=torch_save.MAX_BUDGET)
    held = value if type(value) is dict else {}
    arguments = held.get("args")
    kept = held.get("optimizer")
    inner = kept.get("optimizer") if type(kept) is dict else None
    groups = inner.get("param_groups") if type(inner) is dict else None
    source = torch_save.Source(files, COMMON, read)
    settings = megatron_optimizer.read_settings(groups, source) if type(groups) is list else []
    return arguments.attributes if isinstance(arguments, Foreign) else {}, settings


def _layers(tensor: CheckpointTensor) -> Iterator[CheckpointTensor]:
    """A tensor of stacked layers as one of each layer; any other as it is."""
    first = {piece.shape[:1] for piece in tensor.pieces}
    if not _STACKED.search(tensor.name) or first != {(1,)} or any(piece.place is None for piece in tensor.pieces):
        yield tensor
        return
    layers: dict[int, list[Piece]] = {}
    for piece in tensor.pieces:
        assert piece.place is not None
        row = replace(piece, shape=piece.shape[1:], place=piece.place[1:], read=_Row(piece))
        layers.setdefault(piece.place[0], []).append(row)
    for number, pieces in sorted(layers.items()):
        name, parameter = (_numbered(one, number) for one in (tensor.name, tensor.parameter))
        yield replace(tensor, name=name, parameter=parameter, shape=tensor.shape[1:], pieces=tuple(pieces))


def _numbered(name: str, number: int) -> str:
    return _STACKED.sub(lambda found: f"{found[0]}{number}.", name, count=1)


@dataclass(frozen=True, slots=True)
class _Row:
    """Reads a part of one layer without the dimension of the layers."""

    piece: Piece

    def __call__(self) -> Raw:
        whole: Raw = self.piece.read()[0]
        return whole


def _shaped(tensors: Sequence[CheckpointTensor]) -> list[CheckpointTensor]:
    """States whose parts are flat in the shape of their weights."""
    shapes = {one.name: one.shape for one in tensors if one.section == "weights"}
    return [_unflat(one, shapes.get(one.parameter, ())) if one.section == "optimizer" else one for one in tensors]


def _unflat(tensor: CheckpointTensor, shape: Shape) -> CheckpointTensor:
    """A tensor of (parts along each dimension, numbers of a part) as one of this shape; any other as it is."""
    *parts, count = tensor.shape or (0,)
    if len(parts) != len(shape) or tensor.problem or any(size % cut for size, cut in zip(shape, parts, strict=True)):
        return tensor
    part = tuple(size // cut for size, cut in zip(shape, parts, strict=True))
    held: dict[Shape, list[Piece]] = {}
    for piece in tensor.pieces:
        if piece.place is None or piece.shape[:-1] != (1,) * len(parts):
            return tensor
        held.setdefault(piece.place[:-1], []).append(piece)
    if math.prod(part) != count:
        return tensor
    made = []
    for at, pieces in sorted(held.items()):
        flat = _Flat(
            replace(
                tensor, shape=(count,), pieces=tuple(replace(one, place=(one.place or (0,))[-1:]) for one in pieces)
            )
        )
        place = tuple(one * size for one, size in zip(at, part, strict=True))
        made.append(Piece(shape=part, place=place, read=_Part(flat, 0, part), source=flat.tensor.source))
    return replace(tensor, shape=shape, pieces=tuple(made))


# -- buffers -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shard:
    """What one rank of the tensor parallel group holds of a weight: pieces of it, one behind the other."""

    weight: CheckpointTensor
    pieces: tuple[Piece, ...]

    @property
    def count(self) -> int:
        return sum(math.prod(piece.shape) for piece in self.pieces)

    @property
    def key(self) -> tuple[str, Shape | None]:
        return self.weight.name, self.pieces[0].place

    def ends(self) -> Raw:
        """The first and the last elements. Raises TensorError."""
        first, last = (self.pieces[place].read().reshape(-1) for place in (0, -1))
        size = min(_HEAD, self.count)
        if len(self.pieces) > 1 and min(first.size, last.size) < size:
            first = last = np.concatenate([piece.read().reshape(-1) for piece in self.pieces])
        return np.concatenate([first[:size], last[last.size - size :]])


class _Weights:
    """Weights by what they begin and end with, rounded to their dtype."""

    def __init__(self, tensors: Sequence[CheckpointTensor], options: Mapping[Any, Any]) -> None:
        ranks = number_of(options, "tensor_model_parallel_size")
        self.by_ends: dict[tuple[str, int, bytes], list[_Shard]] = {}
        self.forms: set[tuple[str, int]] = set()
        self._dtypes: dict[str, np.dtype[Any]] = {}
        for tensor in tensors:
            if tensor.section == "weights" and tensor.problem is None:
                for shard in _shards(tensor, ranks):
                    self._add(shard)

    def _add(self, shard: _Shard) -> None:
        try:
            ends = shard.ends()
        except TensorError:
            return  # it is told where the weight itself is read
        form = shard.weight.dtype, shard.count
        self.forms.add(form)
        self._dtypes[form[0]] = ends.dtype
        self.by_ends.setdefault((*form, ends.tobytes()), []).append(shard)

    def find(self, copies: _Flat, start: int) -> list[_Shard]:
        """The weights whose float32 copies can begin at a place, the longest that fit."""
        for dtype, count in sorted(self.forms, key=lambda form: -form[1]):
            if start + count <= copies.count:
                size = min(_HEAD, count)
                ends = np.concatenate([copies.part(start, size), copies.part(start + count - size, size)])
                found = self.by_ends.get((dtype, count, ends.astype(self._dtypes[dtype]).tobytes()))
                if found:
                    return found
        return []


def _shards(tensor: CheckpointTensor, ranks: int) -> Iterator[_Shard]:
    """What each rank holds: a tensor in one piece is on all of them, and a gate and a value are a piece each."""
    pieces = sorted(tensor.pieces, key=lambda piece: piece.place or ())
    step = ranks if len(pieces) % ranks == 0 else 1
    step = len(pieces) if len(pieces) < ranks else step
    for rank in range(step):
        yield _Shard(weight=tensor, pieces=tuple(pieces[rank::step]))


class _Flat:
    """A buffer of one slot, read in parts."""

    def __init__(self, tensor: CheckpointTensor) -> None:
        self.tensor = tensor
        self.count = math.prod(tensor.shape)
        self._pieces = sorted(tensor.pieces, key=lambda piece: piece.place or ())
        self._starts = np.array([piece.place[0] if piece.place else 0 for piece in self._pieces])

    def next_part(self, start: int) -> int:
        """Where the first stored part behind a place begins."""
        at = int(np.searchsorted(self._starts, start, side="right"))
        return int(self._starts[at]) if at < self._starts.size else self.count

    def part(self, start: int, count: int) -> Raw:
        """Elements from a place on: a view where one piece holds them. Raises TensorError."""
        at = max(0, int(np.searchsorted(self._starts, start, side="right")) - 1)
        found: list[Raw] = []
        left = count
        while left > 0:
            begin = start + count - left - int(self._starts[at])
            found.append(self._pieces[at].read().reshape(-1)[begin : begin + left])
            left -= found[-1].size
            at += 1
        if len(found) == 1:
            return found[0]
        whole = np.concatenate(found) if found else np.empty(0, np.float32)
        whole.flags.writeable = False
        return whole


def _name_buckets(
    buckets: Mapping[str, Mapping[str, CheckpointTensor]], weights: _Weights, ranks: int
) -> tuple[list[CheckpointTensor], list[Problem]]:
    made: list[CheckpointTensor] = []
    problems: list[Problem] = []
    parts: dict[tuple[str, str], list[Piece]] = {}
    owners: dict[str, CheckpointTensor] = {}
    taken: set[tuple[str, Shape | None]] = set()
    for bucket, slots in buckets.items():
        flats = {slot: _Flat(tensor) for slot, tensor in slots.items() if tensor.problem is None}
        made += [tensor for tensor in slots.values() if tensor.problem is not None]
        copies = flats.get(_COPY)
        unknown: list[tuple[int, int]] = []
        again: list[tuple[int, int]] = []
        for start, count, shard in _segments(copies, weights, ranks) if copies else ():
            if shard is None or shard.key in taken:  # each part of the tensors has its own state of a norm
                (unknown if shard is None else again).append((start, count))
                continue
            taken.add(shard.key)
            owners[shard.weight.name] = shard.weight
            for slot, flat in flats.items():
                parts.setdefault((shard.weight.name, slot), []).extend(_pieces(flat, start, shard))
        if not copies:
            unknown = [(0, flat.count) for flat in list(flats.values())[:1]]
        for start, count in [*unknown, *again]:
            for slot, flat in flats.items():
                made.append(_by_place(f"{bucket}.{slot}", flat, start, count))
        if unknown:
            error = TensorError(
                say("checkpoints.megatron_parts_unknown", count=len(unknown)), kind="unsupported", where=bucket,
                hint=say("checkpoints.save_fully_reshardable"),
            )  # fmt: skip
            problems.append(problem_of(error))
    for (name, slot), pieces in parts.items():
        word = MASTER if slot == _COPY else slot
        weight = owners[name]
        complete = sum(math.prod(piece.shape) for piece in pieces) == math.prod(weight.shape)
        problem = None if complete else say("checkpoints.deepspeed_parts_lack")
        made.append(
            CheckpointTensor(
                name=f"optimizer.state.{word}.{name}", dtype="torch.float32", shape=weight.shape,
                pieces=tuple(pieces) if complete else (), section="optimizer", parameter=weight.parameter, slot=word,
                problem=problem,
            )
        )  # fmt: skip
    return made, problems


def _segments(copies: _Flat, weights: _Weights, ranks: int) -> Iterator[tuple[int, int, _Shard | None]]:
    """(start, elements, weight) of the parameters of a bucket; None where it is not known which weight it is.

    Where nothing fits, what follows up to the next stored part is one segment, but not if it is filling."""
    unit = math.lcm(ranks, 2 * _ALIGNED)
    share = math.ceil(copies.count / unit) * unit // ranks
    start = 0
    while start < copies.count:
        try:
            found = weights.find(copies, start)
        except TensorError:
            found = []
        if found:
            yield start, found[0].count, found[0] if len(found) == 1 else None
            start = math.ceil((start + found[0].count) / _ALIGNED) * _ALIGNED
            continue
        end = copies.next_part(start)
        filling = start % _ALIGNED and start % share and not end % _ALIGNED and end - start < _ALIGNED
        if not filling:
            yield start, end - start, None
        start = end


def _pieces(flat: _Flat, start: int, shard: _Shard) -> Iterator[Piece]:
    """The pieces of a state, at the places of the weight's."""
    for piece in shard.pieces:
        count = math.prod(piece.shape)
        yield Piece(
            shape=piece.shape, place=piece.place, read=_Part(flat, start, piece.shape), source=flat.tensor.source
        )
        start += count


def _by_place(name: str, flat: _Flat, start: int, count: int) -> CheckpointTensor:
    title = f"{name}[{start}:{start + count}]"
    piece = Piece(shape=(count,), place=(0,), read=_Part(flat, start, (count,)), source=flat.tensor.source)
    return replace(flat.tensor, name=title, parameter=title, slot="", shape=(count,), pieces=(piece,))


@dataclass(frozen=True, slots=True)
class _Part:
    """Reads the elements of one parameter."""

    flat: _Flat
    start: int
    shape: Shape

    def __call__(self) -> Raw:
        return self.flat.part(self.start, math.prod(self.shape)).reshape(self.shape)
