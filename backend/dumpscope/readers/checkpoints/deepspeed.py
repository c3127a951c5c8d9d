"""DeepSpeed's folders of ZeRO: `mp_rank_00_model_states.pt` and one file of optimizer states for each data parallel rank.

Stages 1 and 2 put the parameters of a group one behind the other and cut that into a part for each rank; stage 3 cuts every
parameter by itself. So a parameter is put together from the parts of all ranks, where somebody reads it.

    stages 1, 2   module: the weights in the dtype of the training; the master copies and the optimizer's state from the parts
    stage 3       module: empty weights, so the float32 copies are the weights

Where the parts begin follows from `param_shapes`, or from `param_slice_mappings` where a file has them: DeepSpeed's own
zero_to_fp32.py puts them together in the same way.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from dumpscope.domain.checkpoints.tensors import CheckpointTensor, Piece, Raw, Section, Shape
from dumpscope.errors import Problem, TensorError
from dumpscope.readers.checkpoints import torch_save
from dumpscope.readers.checkpoints.files import Files, damaged, is_plain_name, problem_of
from dumpscope.readers.checkpoints.inert_pickle import DIALECT, Foreign
from dumpscope.readers.tensors.torch_file import open_contents
from dumpscope.readers.tensors.torch_globals import TensorSpec
from dumpscope.texts import say

LATEST: Final = "latest"
_MODEL: Final = re.compile(r"^(?:zero_pp_rank_(?P<rank>\d+)_)?mp_rank_(?P<shard>\d+)_model_states\.pt$")
_OPTIMIZER: Final = re.compile(r"^(?:bf16_|fp16_)?zero_pp_rank_(?P<rank>\d+)_mp_rank_(?P<shard>\d+)_optim_states\.pt$")
MASTER: Final = "fp32"
"""What the optimizer's float32 copy of a parameter is called."""
_MOST_RANKS: Final = 1 << 16


def is_folder(names: Iterable[str]) -> bool:
    """Whether the names of a folder are those of a checkpoint of DeepSpeed."""
    return any(_MODEL.match(name) for name in names)


def latest_folder(files: Files) -> str | None:
    """Folder of the newest checkpoint of a run; None where there is none. Raises TensorError."""
    word = bytes(files.content(LATEST)[:256]).decode("utf-8", "replace").strip()
    return word if is_plain_name(word) and (files.folder / word).is_dir() else None


@dataclass(slots=True)
class _Rank:
    """One rank's file of states. flat: its part of the parameters, by group; states: what the optimizer keeps of them"""

    source: torch_save.Source
    read: Callable[[TensorSpec], Any]
    stage: int
    flat: list[TensorSpec]
    states: list[Mapping[Any, Any]]
    settings: list[Any]
    slices: list[dict[str, tuple[int, int]]]


@dataclass(slots=True)
class _Part:
    """Elements of one parameter in a rank's part of a group: `count` from `start` on."""

    rank: int
    group: int
    start: int
    count: int


_Cut = tuple[str, Shape, int, list[_Part]]
"""Name and shape of a parameter, the group whose state it has, and its parts."""


@dataclass(slots=True)
class _Model:
    """What the file of the model says. shapes: of the trained parameters, by group, in their order"""

    tensors: list[CheckpointTensor] = field(default_factory=list)
    shapes: list[dict[str, Shape]] = field(default_factory=list)
    frozen: dict[str, Shape] = field(default_factory=dict)
    ranks: int = 1


def read_folder(files: Files, names: Sequence[str]) -> tuple[list[CheckpointTensor], list[Problem]]:
    """Tensors of a checkpoint. A rank that cannot be read is a problem, and what it holds a part of cannot be read.

    Raises TensorError where the model's file cannot be read."""
    models = sorted(name for name in names if _MODEL.match(name))
    shards = {found["shard"] for name in models if (found := _MODEL.match(name))}
    if len(shards) > 1 or any(name.startswith("layer_") for name in names):
        raise TensorError(
            say("checkpoints.deepspeed_model_parallel"), kind="unsupported", hint=say("checkpoints.convert_deepspeed"),
            where=models[0],
        )  # fmt: skip
    problems: list[Problem] = []
    model = _read_model(files, models[0], problems)
    ranks: dict[int, _Rank] = {}
    for name in names:
        found = _OPTIMIZER.match(name)
        if found is None:
            continue
        try:
            ranks[int(found["rank"])] = _read_rank(files, name)
        except TensorError as error:
            problems.append(problem_of(error, name))
    if not ranks:
        return model.tensors, problems
    missing = [rank for rank in range(max(model.ranks, 1 + max(ranks))) if rank not in ranks]
    if missing and not problems:
        lost = TensorError(
            say("checkpoints.shard_missing"), kind="missing", hint=say("checkpoints.copy_whole_folder"),
            where=f"zero_pp_rank_{missing[0]}_mp_rank_00_optim_states.pt",
        )  # fmt: skip
        problems.append(problem_of(lost))
    tensors = _join(model, ranks, complete=not missing)
    if model.frozen and ranks[min(ranks)].stage == 3:
        tensors += _join_frozen(files, models, model)
    return tensors, problems


def _read_model(files: Files, name: str, problems: list[Problem]) -> _Model:
    value, read = _open(files, name)
    source = torch_save.Source(files, name, read)
    tensors, damage = torch_save.gather({"module": value.get("module")}, source)
    problems += damage
    whole = [one for one in tensors if one.problem is not None or _count(one.shape)]
    ranks = value.get("dp_world_size")
    return _Model(
        tensors=whole,
        shapes=[_shapes(group) for group in _listed(value.get("param_shapes"))],
        frozen=_shapes(value.get("frozen_param_shapes")),
        ranks=ranks if type(ranks) is int and 0 < ranks <= _MOST_RANKS else 1,
    )


def _read_rank(files: Files, name: str) -> _Rank:
    value, read = _open(files, name)
    held = value.get("optimizer_state_dict")
    if type(held) is not dict:
        raise damaged(name, say("checkpoints.deepspeed_no_state"))
    apart = "fp32_flat_groups" in held
    inner = held.get("optimizer_state_dict" if apart else "base_optimizer_state")
    groups = inner if type(inner) is list else [inner]  # an older DeepSpeed keeps the states as a list, a group each
    states: list[Mapping[Any, Any]] = []
    settings: list[Any] = []
    for one in groups:
        if type(one) is dict and type(one.get("state")) is dict:
            states += [slots for slots in one["state"].values() if type(slots) is dict]
            settings += _listed(one.get("param_groups"))
        elif type(one) is dict:
            states.append(one)
    flat = _listed(held.get("fp32_flat_groups" if apart else "single_partition_of_fp32_groups"))
    return _Rank(
        source=torch_save.Source(files, name, read),
        read=read,
        stage=3 if apart else 2,
        flat=[one for one in flat if isinstance(one, TensorSpec)],
        states=states,
        settings=settings,
        slices=[_slices(one) for one in _listed(held.get("param_slice_mappings"))],
    )


def _open(files: Files, name: str) -> tuple[dict[Any, Any], Callable[[TensorSpec], Any]]:
    try:
        value, read = open_contents(files.content(name), DIALECT, budget=torch_save.MAX_BUDGET)
    except TensorError as error:
        error.where = error.where or name
        raise
    if type(value) is not dict:
        raise damaged(name, say("checkpoints.deepspeed_no_state"))
    return value, read


def _listed(value: Any) -> list[Any]:
    return list(value) if type(value) in (list, tuple) else []


def _shapes(group: Any) -> dict[str, Shape]:
    """Shapes by name; a torch.Size is a tuple of numbers here."""
    found: dict[str, Shape] = {}
    for name, shape in (group if type(group) is dict else {}).items():
        sizes = shape.arguments[0] if isinstance(shape, Foreign) and shape.arguments else shape
        if type(sizes) in (list, tuple) and all(type(one) is int and one >= 0 for one in sizes):
            found[str(name)] = tuple(sizes)
    return found


def _slices(mapping: Any) -> dict[str, tuple[int, int]]:
    """(start, count) of each parameter in a rank's part of a group."""
    found: dict[str, tuple[int, int]] = {}
    for name, address in (mapping if type(mapping) is dict else {}).items():
        facts = address.attributes if isinstance(address, Foreign) else {}
        start, count = facts.get("start"), facts.get("numel")
        if type(start) is int and type(count) is int and start >= 0 and count >= 0:
            found[str(name)] = (start, count)
    return found


# -- putting parameters together ---------------------------------------------------------------------------------------


def _join(model: _Model, ranks: Mapping[int, _Rank], *, complete: bool) -> list[CheckpointTensor]:
    first = ranks[min(ranks)]
    cut = _cut_each(model, ranks) if first.stage == 3 else _cut_groups(model, ranks)
    tensors = list(model.tensors)
    held = {one.name for one in tensors}
    for name, shape, group, parts in cut:
        section: Section = "weights" if name not in held else "optimizer"
        title = name if section == "weights" else f"optimizer.{name}.{MASTER}"
        tensors.append(
            _put_together(
                (section, title, name, "" if section == "weights" else MASTER), shape, parts, ranks, complete=complete
            )
        )
        for slot in _slots(first, group):
            facts: tuple[Section, str, str, str] = ("optimizer", f"optimizer.{name}.{slot}", name, slot)
            tensors.append(_put_together(facts, shape, parts, ranks, complete=complete))
    return [*tensors, *_settings(first)]


def _cut_groups(model: _Model, ranks: Mapping[int, _Rank]) -> Iterator[_Cut]:
    """Stages 1 and 2: each group lies in one piece over the ranks."""
    for group, shapes in enumerate(model.shapes):
        sizes = [(rank, _count(one.flat[group].shape)) for rank, one in sorted(ranks.items()) if group < len(one.flat)]
        mapped = all(group < len(one.slices) and one.slices[group] for one in ranks.values())
        begin = 0
        for name, shape in shapes.items():
            count = _count(shape)
            if mapped:
                slices = [(rank, one.slices[group].get(name)) for rank, one in sorted(ranks.items())]
                parts = [_Part(rank, group, *found) for rank, found in slices if found is not None and found[1]]
            else:
                parts = list(_overlap(begin, count, group, sizes))
            begin += count
            yield name, shape, group, parts


def _overlap(begin: int, count: int, group: int, sizes: Sequence[tuple[int, int]]) -> Iterator[_Part]:
    """Where `count` elements from `begin` on lie in parts that follow each other."""
    here = 0
    for rank, size in sizes:
        first, last = max(begin, here), min(begin + count, here + size)
        if first < last:
            yield _Part(rank, group, first - here, last - first)
        here += size


def _cut_each(model: _Model, ranks: Mapping[int, _Rank]) -> Iterator[_Cut]:
    """Stage 3: of every parameter each rank holds an equal part, the last one filled up; a rank's groups follow each other."""
    begin = 0
    for shapes in model.shapes:
        for name, shape in shapes.items():
            count = _count(shape)
            share = math.ceil(count / model.ranks)
            parts = []
            for rank, one in sorted(ranks.items()):
                here = max(0, min(share, count - rank * share))
                at = 0
                for group, spec in enumerate(one.flat):
                    size = _count(spec.shape)
                    first, last = max(begin, at), min(begin + here, at + size)
                    if first < last:
                        parts.append(_Part(rank, group, first - at, last - first))
                    at += size
            begin += share
            yield name, shape, parts[0].group if parts else 0, parts


def _count(shape: Shape) -> int:
    size: int = math.prod(shape)
    return size


def _join_frozen(files: Files, models: Sequence[str], model: _Model) -> list[CheckpointTensor]:
    """Parameters that are not trained, which stage 3 cuts too: their parts are in the ranks' files of the model."""
    ranks: dict[int, _Rank] = {}
    for number, name in enumerate(models):
        value, read = _open(files, name)
        held = value.get("frozen_param_fragments")
        parts = {str(key): one for key, one in (held if type(held) is dict else {}).items()}
        ranks[number] = _Rank(torch_save.Source(files, name, read), read, 3, [], [parts], [], [])
    found = []
    for name, shape in model.frozen.items():
        count = _count(shape)
        cut: list[_Part] = []
        for number, rank in ranks.items():
            spec = rank.states[0].get(name)
            left = count - sum(part.count for part in cut)
            if isinstance(spec, TensorSpec) and left > 0:
                cut.append(_Part(number, 0, 0, min(_count(spec.shape), left)))
        complete = len(models) >= model.ranks
        found.append(_put_together(("weights", name, name, ""), shape, cut, ranks, complete=complete, key=name))
    return found


def _slots(rank: _Rank, group: int) -> list[str]:
    """What the optimizer keeps for each element of the parameters of a group."""
    if group >= min(len(rank.states), len(rank.flat)):
        return []
    least = _count(rank.flat[group].shape)
    kept = rank.states[group].items()
    return [str(slot) for slot, one in kept if isinstance(one, TensorSpec) and _count(one.shape) >= least]


def _put_together(
    facts: tuple[Section, str, str, str],
    shape: Shape,
    parts: Sequence[_Part],
    ranks: Mapping[int, _Rank],
    *,
    complete: bool,
    key: str | None = None,
) -> CheckpointTensor:
    """facts: section, name, parameter, slot; key: of the parts among the states, None for the slot or the flat part itself"""
    section, title, parameter, slot = facts
    key = slot if key is None else key
    specs: list[tuple[_Rank, TensorSpec, _Part]] = []
    for part in parts:
        rank = ranks[part.rank]
        held = rank.states[part.group].get(key) if key not in ("", MASTER) else rank.flat[part.group]
        if isinstance(held, TensorSpec) and part.start + part.count <= _count(held.shape):
            specs.append((rank, held, part))
    whole = sum(part.count for _, _, part in specs) == _count(shape)
    dtype = specs[0][1].element.name if specs else ""
    if not whole:
        problem = say("checkpoints.shard_of_stage_missing") if not complete else say("checkpoints.deepspeed_parts_lack")
        return CheckpointTensor(
            name=title,
            dtype=dtype,
            shape=shape,
            pieces=(),
            section=section,
            parameter=parameter,
            slot=slot,
            problem=problem,
        )
    piece = Piece(
        shape=shape,
        place=(0,) * len(shape),
        read=lambda: _read_parts(specs, shape),
        source=", ".join(dict.fromkeys(rank.source.name for rank, _, _ in specs)),
    )
    return CheckpointTensor(
        name=title, dtype=dtype, shape=shape, pieces=(piece,), section=section, parameter=parameter, slot=slot
    )


def _read_parts(specs: Sequence[tuple[_Rank, TensorSpec, _Part]], shape: Shape) -> Raw:
    """The elements of one parameter: a view where one rank holds it, else a copy."""
    arrays = []
    for rank, spec, part in specs:
        try:
            array = rank.read(spec).array
        except TensorError as error:
            error.where = error.where or rank.source.name
            raise
        arrays.append(array.reshape(-1)[part.start : part.start + part.count])
    if len(arrays) == 1:
        whole: Raw = arrays[0].reshape(shape)
        return whole
    out = np.concatenate(arrays).reshape(shape)
    out.flags.writeable = False
    return out


def _settings(rank: _Rank) -> list[CheckpointTensor]:
    """Settings of the groups, and the number of steps of each, which every rank has."""
    groups = [group for group in rank.settings if type(group) is dict]
    found, _ = torch_save.gather({"optimizer": {"state": {}, "param_groups": groups}}, rank.source)
    for number, slots in enumerate(rank.states):
        step = slots.get("step")
        title = f"optimizer.param_groups.{number}.step"
        if isinstance(step, TensorSpec):
            made = CheckpointTensor(
                name=title, dtype=step.element.name, shape=step.shape, pieces=(rank.source.piece(step),),
                section="optimizer", parameter=title, slot="step",
            )  # fmt: skip
            found.append(made)
    return found
