"""Folders of files that hold different tensors of one checkpoint: Hugging Face's, with an index or without."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from dumpscope.domain.checkpoints.tensors import CheckpointTensor
from dumpscope.errors import Problem, TensorError
from dumpscope.readers.checkpoints import safetensors_file, torch_save
from dumpscope.readers.checkpoints.files import Files, damaged, is_plain_name, problem_of
from dumpscope.texts import say

INDEX: Final = (".safetensors.index.json", ".bin.index.json")
SAFE: Final = ".safetensors"
TORCH: Final = (".pt", ".pth", ".bin", ".ckpt")
OPTIMIZERS: Final = ("optimizer.pt", "optimizer.bin")
"""What trainers of Hugging Face keep beside the weights."""
_NOT_WEIGHTS: Final = re.compile(
    r"^(optimizer|scheduler|training_args|rng_state.*|scaler|random_states.*)\.(pt|pth|bin|pkl)$"
)
_NUMBERED: Final = re.compile(r"^(?P<stem>.*)-(?P<number>\d{5})-of-(?P<count>\d{5})(?P<end>\.[a-z]+)$")


def find_shards(names: Iterable[str]) -> list[str]:
    """The files of a folder that hold weights: those an index names are found by it, else all of one kind."""
    listed = list(names)
    safe = [name for name in listed if name.endswith(SAFE)]
    if safe:
        return safe
    return [name for name in listed if name.endswith(TORCH) and not _NOT_WEIGHTS.match(name)]


def find_index(names: Iterable[str]) -> str | None:
    """The index among the files of a folder, safetensors' first."""
    listed = list(names)
    return next((name for end in INDEX for name in listed if name.endswith(end)), None)


def read_folder(files: Files, names: list[str]) -> tuple[list[CheckpointTensor], list[Problem]]:
    """Tensors of a folder of shards and of the optimizer beside them. Raises TensorError where the index cannot be read."""
    index = find_index(names)
    tensors, problems = _indexed(files, index) if index else _all_files(files, find_shards(names))
    for name in OPTIMIZERS:
        if name in names:
            try:
                more, damage = torch_save.read_file(files, name, {one.name: one.shape for one in tensors if one.shape})
            except TensorError as error:
                more, damage = [], [problem_of(error, name)]
            tensors += [one for one in more if one.section == "optimizer"]
            problems += damage
    return tensors, problems


def read_any(files: Files, name: str) -> tuple[list[CheckpointTensor], list[Problem]]:
    """Tensors of one file by its first bytes, whatever its name. Raises TensorError."""
    head = files.content(name)[:9]
    if name.endswith(SAFE) or head[8:9] == b"{":
        return safetensors_file.read_file(files, name)
    return torch_save.read_file(files, name)


def _read(files: Files, name: str) -> tuple[list[CheckpointTensor], list[Problem]]:
    try:
        return read_any(files, name)
    except TensorError as error:
        return [], [problem_of(error, name)]


def _all_files(files: Files, names: list[str]) -> tuple[list[CheckpointTensor], list[Problem]]:
    found: list[CheckpointTensor] = []
    problems = _missing(names)
    seen: dict[str, str] = {}
    for name in names:
        tensors, damage = _read(files, name)
        problems += damage
        for tensor in tensors:
            if tensor.name in seen:
                problems.append(_twice(tensor.name, seen[tensor.name], name))
            else:
                seen[tensor.name] = name
                found.append(tensor)
    return found, problems


def _missing(names: list[str]) -> list[Problem]:
    """Numbered shards ("model-00002-of-00004.safetensors") that are not there."""
    held: dict[tuple[str, str, int], set[int]] = {}
    for name in names:
        found = _NUMBERED.match(name)
        if found:
            held.setdefault((found["stem"], found["end"], int(found["count"])), set()).add(int(found["number"]))
    return [
        problem_of(_no_shard(f"{stem}-{number:05}-of-{count:05}{end}"))
        for (stem, end, count), numbers in held.items()
        for number in range(1, min(count, 10_000) + 1)
        if number not in numbers
    ]


def _no_shard(name: str) -> TensorError:
    return TensorError(
        say("checkpoints.shard_missing"), kind="missing", hint=say("checkpoints.copy_whole_folder"), where=name
    )


def _twice(tensor: str, first: str, second: str) -> Problem:
    return problem_of(damaged(f"{second}: {tensor}", say("checkpoints.tensor_twice", file=first), kind="duplicate_key"))


def _indexed(files: Files, index: str) -> tuple[list[CheckpointTensor], list[Problem]]:
    """What an index names; a tensor whose shard lacks it, or is not there, stands in the list with its problem."""
    table = files.document(index).get("weight_map")
    if not isinstance(table, dict) or not all(isinstance(file, str) for file in table.values()):
        raise damaged(index, say("checkpoints.no_weight_map"))
    wanted: dict[str, list[str]] = {}
    for name, file in table.items():
        wanted.setdefault(file, []).append(name)
    tensors: list[CheckpointTensor] = []
    problems: list[Problem] = []
    for file, names in wanted.items():
        try:
            if not is_plain_name(file):
                raise damaged(f"{index}: {file[:200]}", say("checkpoints.index_names_no_file"), kind="refused")
            held, damage = read_any(files, file)
        except TensorError as error:
            problems.append(problem_of(error, file))
            tensors += [_lost(name, error.detail) for name in names]
            continue
        problems += damage
        by_name = {tensor.name: tensor for tensor in held}
        tensors += held
        for name in names:
            if name not in by_name:
                lost = damaged(f"{file}: {name}", say("checkpoints.tensor_not_in_shard", index=index), kind="missing")
                problems.append(problem_of(lost))
                tensors.append(_lost(name, lost.detail))
    return tensors, problems


def _lost(name: str, detail: str) -> CheckpointTensor:
    return CheckpointTensor(name=name, parameter=name, dtype="", shape=(), pieces=(), problem=detail)
