"""Finds out what a path holds, and reads its list of tensors."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Final

from dumpscope.domain.checkpoints.tensors import Checkpoint, CheckpointTensor, Kind
from dumpscope.errors import NotFoundError, Problem, TensorError, UnreadableError
from dumpscope.readers.checkpoints import deepspeed, distributed, megatron, megatron_dist, sharded
from dumpscope.readers.checkpoints.files import Files
from dumpscope.readers.checkpoints.optimizer_names import split_flat_name
from dumpscope.texts import say

LEADING: Final = ("model", "app.model", "state.model", "module", "state_dict")
"""Words before the names of weights in flat checkpoints."""
INNER: Final = ("model", "pytorch_model_fsdp_0", "weights")
"""Folders in which trainers keep a checkpoint beside other files."""


def open_checkpoint(path: Path | str, *, root: str = os.sep) -> Checkpoint:
    """The tensors that a file or a folder holds, without their elements.

    root: folder that no link of the checkpoint may lead out of
    Raises NotFoundError for a path that is not there, UnreadableError where it is no checkpoint or holds no tensor.
    """
    where = Path(path)
    if not where.exists():
        raise NotFoundError(
            say("checkpoints.no_such_path"), where=str(path), hint=say("checkpoints.name_file_or_folder")
        )
    try:
        kind, tensors, problems = _read(where, root)
    except TensorError as error:
        detail = say("error.at", where=error.where, what=error.detail) if error.where else error.detail
        raise UnreadableError(detail, hint=error.hint, where=str(path)) from error
    except OSError as error:
        raise UnreadableError(
            say("readers.cannot_opened", reason=error.strerror), where=error.filename or str(path)
        ) from error
    if not tensors:
        what = (
            say("error.at", where=problems[0].loc, what=problems[0].message)
            if problems
            else say("checkpoints.no_tensors")
        )
        raise UnreadableError(what, where=str(path), hint=say("checkpoints.name_file_or_folder"))
    named = _with_prefixes(list(map(_with_flat_names, tensors)))
    return Checkpoint(path=str(path), kind=kind, tensors=tuple(named), problems=tuple(problems))


def _read(path: Path, root: str) -> tuple[Kind, list[CheckpointTensor], list[Problem]]:
    if not path.is_dir():
        files = Files(path.parent, root)
        if path.name.endswith(sharded.INDEX):
            return "sharded", *sharded.read_folder(files, [path.name])
        if path.name == distributed.METADATA:
            return _read(path.parent, root)
        tensors, problems = sharded.read_any(files, path.name)
        safe = path.name.endswith(sharded.SAFE) or files.content(path.name)[8:9] == b"{"
        return "safetensors" if safe else "torch", tensors, problems
    files = Files(path, root)
    names = files.names()
    if distributed.METADATA in names:
        read = megatron_dist if megatron_dist.COMMON in names else distributed
        return "distributed", *read.read_folder(files)
    if megatron_dist.COMMON in names:
        raise TensorError(
            say("checkpoints.shard_missing"), kind="missing", hint=say("checkpoints.copy_whole_folder"),
            where=distributed.METADATA,
        )  # fmt: skip
    if megatron.find_ranks(names):
        return "megatron", *megatron.read_folder(files, names)
    if megatron.LATEST in names:
        folder = megatron.latest_iteration(files)
        if folder is not None:
            return _read(path / folder, root)
    if deepspeed.is_folder(names):
        return "deepspeed", *deepspeed.read_folder(files, names)
    if deepspeed.LATEST in names:
        folder = deepspeed.latest_folder(files)
        if folder is not None:
            return _read(path / folder, root)
    if sharded.find_index(names) or sharded.find_shards(names):
        return "sharded", *sharded.read_folder(files, names)
    inner = next((name for name in INNER if name in names and (path / name).is_dir()), None)
    if inner is not None:
        return _read(path / inner, root)
    iterations = [name for name in names if name.startswith("iter_") and (path / name).is_dir()]
    if iterations:
        return _read(path / iterations[-1], root)
    raise TensorError(say("checkpoints.folder_holds_none"), kind="missing", hint=say("checkpoints.name_file_or_folder"))


def _with_flat_names(tensor: CheckpointTensor) -> CheckpointTensor:
    """A weight whose flat name says that it belongs to an optimizer, as that."""
    split = split_flat_name(tensor.name) if tensor.section == "weights" else None
    if split is None:
        return tensor
    return replace(tensor, section="optimizer", parameter=split[0] or tensor.name, slot=split[1])


def _with_prefixes(tensors: list[CheckpointTensor]) -> list[CheckpointTensor]:
    """Parameters of an optimizer by the names that the weights have beside it: {"model": ..., "optim": ...} puts a word before
    the weights alone."""
    weights = {tensor.parameter for tensor in tensors if tensor.section == "weights"}
    prefixes: Counter[str] = Counter()
    for tensor in tensors:
        if tensor.slot and tensor.parameter not in weights:
            prefixes.update(f"{word}." for word in LEADING if f"{word}.{tensor.parameter}" in weights)
    if not prefixes or any(tensor.slot and tensor.parameter in weights for tensor in tensors):
        return tensors
    prefix = prefixes.most_common(1)[0][0]
    return [
        replace(tensor, parameter=prefix + tensor.parameter) if prefix + tensor.parameter in weights else tensor
        for tensor in tensors
    ]
