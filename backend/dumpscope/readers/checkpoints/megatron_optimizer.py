"""The states of Megatron's distributed optimizer: `distrib_optim.pt`, whose numbers lie in flat buffers without names.

A buffer holds the parameters of one dtype, the last one of the model first. Each begins at a multiple of 64 elements after the
begin of its bucket, and the file leaves out the filling behind a bucket, so that where a parameter lies depends on the buckets:

    embedding 96 | norm 8                  model, in its order
    norm 8  ... | embedding 96             one bucket: the embedding begins at 64
    norm 8 | embedding 96                  a bucket for each: it begins at 8

The file does not say where the buckets are. Every division that Megatron can have made is tried, and one counts only if the
float32 copies at its places, rounded to the dtype of the weights, are the weights. So a name is never a guess.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from dumpscope.domain.checkpoints.tensors import CheckpointTensor, Piece, Raw, Shape
from dumpscope.errors import Problem, TensorError
from dumpscope.readers.checkpoints import torch_save
from dumpscope.readers.checkpoints.files import Files, problem_of
from dumpscope.readers.checkpoints.inert_pickle import DIALECT
from dumpscope.readers.checkpoints.optimizer_names import name_parameters
from dumpscope.readers.tensors.arrays import ElementType
from dumpscope.readers.tensors.torch_file import open_contents
from dumpscope.readers.tensors.torch_globals import TensorSpec
from dumpscope.texts import say

FILE: Final = "distrib_optim.pt"
MASTER: Final = "fp32"
"""What the optimizer's float32 copy of a parameter is called, as in DeepSpeed's folders."""
_COPY: Final = "param"
_SLOTS: Final = (_COPY, "exp_avg", "exp_avg_sq")
_ALIGNED: Final = (64, 1)
"""Elements at whose multiples a parameter begins: today, and in Megatron-core before 0.7."""
_SMALLEST_BUCKET: Final = 40_000_000
_FOR_A_RANK: Final = 1_000_000
_TIED: Final = ("word_embeddings.weight", "output_layer.weight")
"""Weights that have a bucket of their own where the first and the last stage share them."""
_NO_PARAMETERS: Final = ("_extra_state", "inv_freq", "expert_bias", "local_tokens_per_expert")
_LAYER_WISE: Final = "layer_wise_optimizer_"
_LISTED: Final = "fp32_from_fp16_params"
_SAMPLE: Final = 32
"""Elements at each end of a parameter, and as many between, that are compared with the weight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Buffer:
    """Flat tensors by slot. number: of the buffer; dtypes: of the parameters and of their gradients"""

    number: int
    dtypes: tuple[ElementType, ElementType]
    slots: Mapping[str, TensorSpec]

    @property
    def count(self) -> int:
        return math.prod(self.slots[_COPY].shape)


Read = Callable[[TensorSpec], Raw]


def read_beside(
    files: Files,
    folder: str,
    held: Sequence[str],
    chunks: Sequence[Sequence[CheckpointTensor]],
    options: Mapping[Any, Any],
) -> tuple[list[list[CheckpointTensor]], list[Problem]]:
    """What the files beside the model's keep, for each chunk; held: names of the files.

    A file that cannot be read is a tensor that cannot be read, so that nobody takes two such folders for equal."""
    none: list[list[CheckpointTensor]] = [[] for _ in chunks]
    name = next((one for one in held if one.startswith(_LAYER_WISE)), FILE)
    try:
        if name != FILE:
            raise TensorError(
                say("checkpoints.megatron_layer_wise"), kind="unsupported",
                hint=say("checkpoints.save_optimizer_by_parameter"),
            )  # fmt: skip
        if FILE in held:
            return read_states(files, folder, chunks, options)
        if options.get("use_distributed_optimizer") is not True or options.get("no_save_optim") is True:
            return none, []
        raise TensorError(say("checkpoints.shard_missing"), kind="missing", hint=say("checkpoints.copy_whole_folder"))
    except TensorError as error:
        error.where = error.where or f"{folder}/{name}"
        title = f"optimizer.{folder}.{name}"
        lost = CheckpointTensor(
            name=title, dtype="", shape=(), pieces=(), section="optimizer", parameter=title, problem=error.detail
        )
        return [[lost], *none[1:]] if error.kind != "missing" else none, [problem_of(error)]


def read_states(
    files: Files, folder: str, chunks: Sequence[Sequence[CheckpointTensor]], options: Mapping[Any, Any]
) -> tuple[list[list[CheckpointTensor]], list[Problem]]:
    """What the optimizer keeps, for each chunk of the model.

    chunks: their weights, in the model's order; options: Megatron's arguments, as the model's file has them

    A buffer whose places cannot be proved stays one flat tensor of the first chunk, and is a problem in the list.
    Raises TensorError where the file cannot be read."""
    path = f"{folder}/{FILE}"
    value, load = open_contents(files.content(path), DIALECT, budget=torch_save.MAX_BUDGET)
    source = torch_save.Source(files, path, load)

    def read(spec: TensorSpec) -> Raw:
        return load(spec).array

    buffers = _buffers(value)
    if not buffers:
        raise TensorError(
            say("checkpoints.megatron_old_buffers"), kind="unsupported",
            hint=say("checkpoints.save_optimizer_by_parameter"), where=path,
        )  # fmt: skip
    made: list[list[CheckpointTensor]] = [[] for _ in chunks]
    problems: list[Problem] = []
    owners = [
        (place, [one for one in trained if one.dtype == dtype])
        for place, trained in enumerate(map(_trained, chunks))
        for dtype in dict.fromkeys(one.dtype for one in trained)
    ]
    fits = len(owners) == len(buffers)
    bucket = _bucket(options, sum(math.prod(one.shape) for _, weights in owners for one in weights))
    for buffer in buffers:
        place, weights = owners[buffer.number] if fits else (0, [])
        weights = [one for one in reversed(weights) if one.dtype == buffer.dtypes[0].name]
        starts = _prove(buffer, weights, read, bucket)
        if starts is None:
            flat = TensorError(
                say("checkpoints.megatron_places_unknown"), kind="unsupported",
                hint=say("checkpoints.save_optimizer_by_parameter"), where=f"{path}: {buffer.number}",
            )  # fmt: skip
            problems.append(problem_of(flat))
            made[place] += _flat(buffer, folder, source)
            continue
        for weight, start in zip(weights, starts, strict=True):
            made[place] += _states(buffer, weight, start, read, path)
    return made, problems


def _buffers(value: Any) -> list[_Buffer]:
    """The buffers of a file in their order, [] where it has another form."""
    found: list[_Buffer] = []
    if type(value) is list and len(value) == 1:
        value = value[0]
    if type(value) is not dict or value.get("buckets_coalesced") is not True:
        return []
    for number in range(len(value)):
        one = value.get(number)
        if one is None:
            break
        if type(one) is not dict or len(one) != 1:
            return []
        ((dtypes, slots),) = one.items()
        held = {slot: slots.get(slot) for slot in _SLOTS} if type(slots) is dict else {}
        specs = {slot: spec for slot, spec in held.items() if isinstance(spec, TensorSpec) and len(spec.shape) == 1}
        if type(dtypes) is not tuple or len(dtypes) != 2 or len({spec.shape for spec in specs.values()}) != 1:
            return []
        if len(specs) != len(_SLOTS) or specs[_COPY].element.array != np.dtype(np.float32):
            return []
        found.append(_Buffer(number=number, dtypes=dtypes, slots=specs))
    return found if len(found) == len([key for key in value if type(key) is int]) else []


def _trained(chunk: Sequence[CheckpointTensor]) -> list[CheckpointTensor]:
    return [
        one for one in chunk
        if one.section == "weights" and not one.problem and not one.name.endswith(_NO_PARAMETERS)
    ]  # fmt: skip


def _flat(buffer: _Buffer, folder: str, source: torch_save.Source) -> list[CheckpointTensor]:
    """A buffer as it is, by the rank that holds it."""
    made = []
    for slot, spec in buffer.slots.items():
        name = f"optimizer.{folder}.{buffer.number}.{MASTER if slot == _COPY else slot}"
        made.append(_tensor(name, spec, source.piece(spec), name, ""))
    return made


# -- where the parameters lie ------------------------------------------------------------------------------------------


def lay_out(sizes: Sequence[int], alone: Sequence[bool], *, aligned: int, bucket: int | None) -> tuple[list[int], int]:
    """Where parameters of these sizes begin, one behind the other, and where the last one ends.

    alone: which have a bucket of their own; bucket: elements after which one ends, None for one bucket
    """
    starts: list[int] = []
    begin = end = 0
    for size, own in zip(sizes, alone, strict=True):
        start = begin + math.ceil((end - begin) / aligned) * aligned
        if own:
            begin = start
        starts.append(start)
        end = start + size
        if own or (bucket is not None and end - begin >= bucket):
            begin = end
    return starts, end


def _layouts(weights: Sequence[CheckpointTensor], count: int, bucket: int) -> Iterator[list[int]]:
    """The places that the parameters can have in a buffer of `count` elements."""
    sizes = [math.prod(one.shape) for one in weights]
    shared = [one.name.endswith(_TIED) for one in weights]
    seen: list[list[int]] = []
    for aligned in _ALIGNED:
        for limit in (None, bucket):
            for alone in ([False] * len(sizes), shared):
                starts, end = lay_out(sizes, alone, aligned=aligned, bucket=limit)
                if end == count and starts not in seen:
                    seen.append(starts)
                    yield starts


def _bucket(options: Mapping[Any, Any], parameters: int) -> int:
    """Elements after which a bucket ends, by the arguments of the run."""
    given, number = options.get("ddp_bucket_size"), options.get("ddp_num_buckets")
    if type(number) is int and number > 0:
        return parameters // number
    if type(given) is int and given > 0:
        return given
    return max(_SMALLEST_BUCKET, _FOR_A_RANK * ranks_of(options))


def number_of(options: Mapping[Any, Any], word: str) -> int:
    """A count among Megatron's arguments, 1 where it is not there."""
    held = options.get(word)
    return held if type(held) is int and held > 0 else 1


def ranks_of(options: Mapping[Any, Any]) -> int:
    """Ranks among which a buffer of the optimizer is divided."""
    model = number_of(options, "tensor_model_parallel_size") * number_of(options, "pipeline_model_parallel_size")
    return max(1, number_of(options, "world_size") // model)


def _prove(buffer: _Buffer, weights: Sequence[CheckpointTensor], read: Read, bucket: int) -> list[int] | None:
    """Where each weight's copy begins, by the values; None where no division of the buffer gives the weights."""
    copies = read(buffer.slots[_COPY]) if weights else np.empty(0, np.float32)
    best: tuple[int, list[int]] | None = None
    for starts in _layouts(weights, buffer.count, bucket):
        told = same = 0
        for weight, start in zip(weights, starts, strict=True):
            agrees, tells = _is_copy(copies, start, weight)
            told += tells
            same += tells and agrees
        if 2 * same > told and (best is None or same > best[0]):
            best = same, starts
    return best[1] if best else None


def _is_copy(copies: Raw, start: int, weight: CheckpointTensor) -> tuple[bool, bool]:
    """Whether the float32 numbers from `start` on are those of a weight, and whether its values can tell: not if all are one.

    A sample is compared, and half of it is enough: a weight of which some elements were changed is that weight still. A weight
    that cannot be read tells nothing, and is told where it is compared."""
    try:
        values = weight.pieces[0].read().reshape(-1)
    except TensorError:
        return True, False
    count = values.size
    at = np.unique(
        np.concatenate([
            np.arange(min(_SAMPLE, count)), np.arange(max(0, count - _SAMPLE), count),
            np.linspace(0, max(0, count - 1), _SAMPLE).astype(np.int64),
        ])
    )  # fmt: skip
    mine = values[at] if count else values
    copied = copies[start + at].astype(mine.dtype) if count else copies[:0]
    with np.errstate(invalid="ignore"):
        same = (copied == mine) | (np.isnan(copied) & np.isnan(mine))
        tells = count > 1 and bool((mine != mine[0]).any())
    return 2 * int(same.sum()) >= same.size, tells


def _states(buffer: _Buffer, weight: CheckpointTensor, start: int, read: Read, path: str) -> Iterator[CheckpointTensor]:
    """What the optimizer keeps of one weight, in the weight's shape."""
    agrees, _ = _is_copy(read(buffer.slots[_COPY]), start, weight)
    problem = None if agrees else say("checkpoints.megatron_no_copy", weight=weight.name)
    for slot, spec in buffer.slots.items():
        word = MASTER if slot == _COPY else slot
        name = f"optimizer.{weight.name}.{word}"
        piece = Piece(
            shape=weight.shape, place=(0,) * len(weight.shape), read=_Part(read, spec, start, weight.shape, path),
            source=path,
        )  # fmt: skip
        yield CheckpointTensor(
            name=name, dtype=spec.element.name, shape=weight.shape, pieces=() if problem else (piece,),
            section="optimizer", parameter=weight.name, slot=word, problem=problem,
        )  # fmt: skip


class _Part:
    """Reads the elements of one parameter out of a buffer, as a view."""

    def __init__(self, read: Read, spec: TensorSpec, start: int, shape: Shape, path: str) -> None:
        self._read, self._spec, self._start, self._shape, self._path = read, spec, start, shape, path

    def __call__(self) -> Raw:
        try:
            whole = self._read(self._spec)
        except TensorError as error:
            error.where = error.where or self._path
            raise
        return whole[self._start : self._start + math.prod(self._shape)].reshape(self._shape)


# -- the optimizer that is not distributed -----------------------------------------------------------------------------


def read_kept(value: Any, source: torch_save.Source, weights: Sequence[CheckpointTensor]) -> list[CheckpointTensor]:
    """What the model's file keeps of Megatron's optimizer: {"optimizer": ..., "fp32_from_fp16_params": ...}, or the settings
    alone where the optimizer is distributed; [] for others.

    The float32 copies stand group by group in the order of torch's numbers. What is not the copy of its weight has no name."""
    held: dict[Any, Any] = value if type(value) is dict else {}
    inner: Any = held.get("optimizer")
    copies = held.get(_LISTED)
    groups = inner.get("param_groups") if type(inner) is dict else None
    if type(groups) is list and "state" not in inner:
        return read_settings(groups, source)
    if not torch_save.is_optimizer(inner) or type(copies) is not list:
        return []
    by_name = {one.name: one for one in weights if one.section == "weights" and not one.problem}
    tensors, _ = torch_save.gather({"optimizer": inner}, source, {name: one.shape for name, one in by_name.items()})
    states = {
        key: next((one.shape for one in slots.values() if isinstance(one, TensorSpec) and one.shape), ())
        for key, slots in inner["state"].items()
        if type(slots) is dict
    }
    names = name_parameters(inner["param_groups"], states, {name: one.shape for name, one in by_name.items()})
    doubtful: set[str] = set()
    for number, (group, listed) in enumerate(zip(inner["param_groups"], copies, strict=False)):
        numbers = group.get("params") if type(group) is dict else None
        half = [
            names[one]
            for one in (numbers if type(numbers) is list else [])
            if one in names and by_name[names[one]].dtype != "torch.float32"
        ]
        specs = [one for one in (listed if type(listed) is list else []) if isinstance(one, TensorSpec)]
        for place, spec in enumerate(specs):
            piece = source.piece(spec)
            name = half[place] if len(half) == len(specs) else ""
            if _is_copy_of(piece, by_name.get(name)):
                tensors.append(_tensor(f"optimizer.{name}.{MASTER}", spec, piece, name, MASTER))
            else:
                doubtful.add(name)
                title = f"optimizer.{_LISTED}.{number}.{place}"
                tensors.append(_tensor(title, spec, piece, title, ""))
    return [
        replace(one, pieces=(), problem=say("checkpoints.megatron_no_copy", weight=one.parameter))
        if one.slot and one.parameter in doubtful
        else one
        for one in tensors
    ]


def _is_copy_of(piece: Piece, weight: CheckpointTensor | None) -> bool:
    if weight is None or weight.shape != piece.shape:
        return False
    try:
        return _is_copy(piece.read().reshape(-1), 0, weight)[0]
    except TensorError:
        return True  # it is told where it is compared


def read_settings(groups: Sequence[Any], source: torch_save.Source) -> list[CheckpointTensor]:
    """The settings of the groups and the steps of each."""
    found, _ = torch_save.gather({"optimizer": {"state": {}, "param_groups": list(groups)}}, source)
    for number, group in enumerate(groups):
        step = group.get("step") if type(group) is dict else None
        if isinstance(step, int | float):
            title = f"optimizer.param_groups.{number}.step"
            made = CheckpointTensor(
                name=title, dtype="torch.float64", shape=(), pieces=(source.number(float(step)),), section="optimizer",
                parameter=title, slot="step",
            )  # fmt: skip
            found.append(made)
    return found


def _tensor(name: str, spec: TensorSpec, piece: Piece, parameter: str, slot: str) -> CheckpointTensor:
    return CheckpointTensor(
        name=name, dtype=spec.element.name, shape=spec.shape, pieces=(piece,), section="optimizer",
        parameter=parameter, slot=slot,
    )  # fmt: skip
