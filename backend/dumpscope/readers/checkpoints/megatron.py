"""Megatron's folders: `mp_rank_TT[_PPP]/model_optim_rng.pt`, one file for each part of the tensors and each stage of the layers.

The shards of a tensor are kept side by side: along which dimension they are joined follows from the other checkpoint's shape.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from dumpscope.domain.checkpoints.tensors import CheckpointTensor, Piece
from dumpscope.errors import Problem, TensorError
from dumpscope.readers.checkpoints import megatron_optimizer, torch_save
from dumpscope.readers.checkpoints.files import Files, damaged, problem_of
from dumpscope.readers.checkpoints.inert_pickle import DIALECT, Foreign
from dumpscope.readers.tensors.torch_file import open_contents
from dumpscope.texts import say

LATEST: Final = "latest_checkpointed_iteration.txt"
FILES: Final = ("model_optim_rng.pt", "model_rng.pt")
_RANK: Final = re.compile(r"^mp_rank_(?P<shard>\d{2,})(?:_(?P<stage>\d{3,}))?(?:_\d{3,})?$")
_CHUNK: Final = re.compile(r"^model(?P<chunk>\d+)$")
_LAYER: Final = re.compile(r"(?P<head>(?:^|\.)layers\.)(?P<number>\d+)(?=\.)")
_OF_A_RANK: Final = re.compile(r"^optimizer\.mp_rank_\d")
"""Names of what only one rank has: a buffer whose parameters are not known."""
_STATE: Final = "_extra_state"
_MOST_NUMBERS: Final = 3
"""Underscores in the name of a folder without a number for the experts."""


def find_ranks(names: Iterable[str]) -> list[str]:
    """Folders of ranks among the names of a folder."""
    return [name for name in names if _RANK.match(name)]


def latest_iteration(files: Files) -> str | None:
    """Folder of the newest iteration of a run; None where the folder holds no run. Raises TensorError."""
    try:
        word = bytes(files.content(LATEST)[:64]).decode("ascii", "replace").strip()
    except TensorError as error:
        if error.kind == "missing":
            return None
        raise
    folder = word if word == "release" else f"iter_{int(word):07d}" if word.isdecimal() else None
    if folder is None:
        raise damaged(LATEST, say("checkpoints.no_iteration"))
    return folder


def read_folder(files: Files, names: list[str]) -> tuple[list[CheckpointTensor], list[Problem]]:
    """Tensors of all ranks. A rank that cannot be read is a problem, and every tensor of its stage cannot be read."""
    stages: dict[int, dict[int, list[list[CheckpointTensor]]]] = {}
    problems: list[Problem] = []
    lost: set[int] = set()
    for name in find_ranks(names):
        found = _RANK.match(name)
        assert found is not None
        stage, shard = int(found["stage"] or 0), int(found["shard"])
        try:
            chunks, damage = _read_rank(files, name)
        except TensorError as error:
            problems.append(problem_of(error, name))
            lost.add(stage)
            continue
        problems += damage
        stages.setdefault(stage, {})[shard] = chunks
    joined: list[tuple[int, int, list[CheckpointTensor]]] = []
    for stage, shards in sorted(stages.items()):
        for chunk in range(max(map(len, shards.values()))):
            members = [shards[shard][chunk] for shard in sorted(shards) if chunk < len(shards[shard])]
            joined.append((chunk, stage, _side_by_side(members, incomplete=stage in lost)))
    joined.sort(key=lambda one: one[:2])
    return _number_layers([tensors for _, _, tensors in joined]), problems


def _read_rank(files: Files, name: str) -> tuple[list[list[CheckpointTensor]], list[Problem]]:
    """Tensors of the chunks of a rank. Raises TensorError."""
    held = sorted(os.listdir(files.folder / name)) if (files.folder / name).is_dir() else []
    file = next((one for one in FILES if one in held), None)
    if file is None:
        raise TensorError(
            say("checkpoints.shard_missing"), kind="missing", hint=say("checkpoints.copy_whole_folder"),
            where=str(Path(name) / FILES[0]),
        )  # fmt: skip
    path = f"{name}/{file}"
    try:
        value, read = open_contents(files.content(path), DIALECT, budget=torch_save.MAX_BUDGET)
        chunks, problems = _gather(value, torch_save.Source(files, path, read))
    except TensorError as error:
        error.where = error.where or path
        raise
    options = _options(value)
    if (options.get("expert_model_parallel_size") or 1) != 1 or name.count("_") > _MOST_NUMBERS:
        raise TensorError(
            say("checkpoints.megatron_experts_divided"), kind="unsupported",
            hint=say("checkpoints.save_optimizer_by_parameter"), where=path,
        )  # fmt: skip
    states, damage = megatron_optimizer.read_beside(files, name, held, chunks, options)
    return [[*tensors, *more] for tensors, more in zip(chunks, states, strict=True)], problems + damage


def _options(value: Any) -> Mapping[Any, Any]:
    """Megatron's arguments of the run that saved a file."""
    held = value.get("args") if type(value) is dict else None
    return held.attributes if isinstance(held, Foreign) else {}


def _gather(value: Any, source: torch_save.Source) -> tuple[list[list[CheckpointTensor]], list[Problem]]:
    """Tensors of the chunks of a rank's file; what the optimizer keeps stands in the first."""
    if type(value) is not dict:
        tensors, problems = torch_save.gather(value, source)
        return [_plain(tensors)], problems
    chunks = sorted(
        (int(found["chunk"]), key)
        for key in value
        if type(key) is str and (found := _CHUNK.match(key)) is not None
    )  # fmt: skip
    own = {word: part for word, part in value.items() if not (type(word) is str and _CHUNK.match(word))}
    parts = [{**(own if place == 0 else {}), "model": value[key]} for place, (_, key) in enumerate(chunks)] or [own]
    made: list[list[CheckpointTensor]] = []
    problems = []
    for part in parts:
        tensors, damage = torch_save.gather(part, source)
        made.append(_plain(tensors))
        problems += damage
    weights = [one for tensors in made for one in tensors if one.section == "weights"]
    kept = megatron_optimizer.read_kept(value.get("optimizer"), source, weights)
    if kept:
        made[0] = [one for one in made[0] if one.section == "weights"] + kept
    return made, problems


def _plain(tensors: list[CheckpointTensor]) -> list[CheckpointTensor]:
    """Without the state of layers that only describes their fp8 scales, and without random states."""
    return [one for one in tensors if not one.name.endswith(_STATE) and one.section != "other"]


def _side_by_side(members: list[list[CheckpointTensor]], *, incomplete: bool) -> list[CheckpointTensor]:
    """The tensors of one stage with the shards of all its members."""
    by_name: dict[str, list[CheckpointTensor]] = {}
    for tensors in members:
        for tensor in tensors:
            by_name.setdefault(tensor.name, []).append(tensor)
    made = []
    for held in by_name.values():
        first = held[0]
        problem = next((one.problem for one in held if one.problem), None)
        partly = first.section == "optimizer" and len(held) < len(members) and not _OF_A_RANK.match(first.name)
        if incomplete or partly:
            problem = problem or say("checkpoints.shard_of_stage_missing")
        pieces: tuple[Piece, ...] = tuple(piece for one in held for piece in one.pieces)
        if len(pieces) > 1 and first.shape:
            pieces = tuple(replace(piece, place=None) for piece in pieces)
        elif len(pieces) > 1:
            pieces = pieces[:1]
        made.append(replace(first, pieces=() if problem else pieces, problem=problem))
    return made


def _number_layers(stages: list[list[CheckpointTensor]]) -> list[CheckpointTensor]:
    """All stages as one model: layers that each stage counts from 0 are counted on."""
    numbers = [
        {int(found["number"]) for one in tensors if (found := _LAYER.search(one.parameter or one.name))}
        for tensors in stages
    ]
    counted = len(stages) > 1 and any(mine & theirs for place, mine in enumerate(numbers) for theirs in numbers[:place])
    made: dict[str, CheckpointTensor] = {}
    first = 0
    for tensors, held in zip(stages, numbers, strict=True):
        for tensor in tensors:
            moved = _moved(tensor, first) if counted else tensor
            made.setdefault(moved.name, moved)  # word embeddings stand on the first and the last stage
        first += max(held, default=-1) + 1
    return list(made.values())


def _moved(tensor: CheckpointTensor, first: int) -> CheckpointTensor:
    def count_on(name: str) -> str:
        return _LAYER.sub(lambda found: f"{found['head']}{int(found['number']) + first}", name, count=1)

    return replace(tensor, name=count_on(tensor.name), parameter=count_on(tensor.parameter))
