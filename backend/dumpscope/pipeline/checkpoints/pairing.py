"""Pairs the tensors of two checkpoints: by name, by their bytes, by form, as one tensor under two names, as parts of one."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from dumpscope.domain.checkpoints.differences import Match
from dumpscope.domain.checkpoints.tensors import Checkpoint, CheckpointTensor, Shape
from dumpscope.errors import TensorError
from dumpscope.match.checkpoints.joining import find_parts, fused_parent, join_parts, joined_shape
from dumpscope.match.checkpoints.names import Names, match_forms, match_names
from dumpscope.match.renames.rename_rules import Rename
from dumpscope.match.renames.rule_texts import mask_numbers

SAMPLE: Final = 1024
"""Elements at the beginning, in the middle and at the end of a tensor by which its bytes are known again."""
LEAST: Final = 64
"""Elements from which equal bytes say that two tensors are one."""


MOST_RULES: Final = 100
"""Renames that are told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorPair:
    """golden: None where only the target has it, and the other way round; names: of the golden's tensors that it stands for"""

    target: CheckpointTensor | None
    golden: CheckpointTensor | None
    match: Match
    golden_name: str = ""


def pair_tensors(
    target: Checkpoint, golden: Checkpoint, renames: Sequence[Rename] = ()
) -> tuple[list[TensorPair], list[str]]:
    """All tensors of both checkpoints, each in one pair, in the order of the target; and the renames that were found."""
    names = match_names(_shapes(target), _shapes(golden), renames)
    mine, theirs = _by_parameter(target), _by_parameter(golden)
    known = _match_bytes(names, mine, theirs)
    match_forms(names, known)
    pairs: list[TensorPair] = []
    taken: set[int] = set()
    held = {_key(tensor): tensor for tensor in golden.tensors}
    for tensor in target.tensors:
        parameter = names.pairs.get(tensor.parameter)
        other = None if parameter is None else held.get((tensor.section, parameter, _slot(tensor)))
        if other is None:
            other = held.get(_key(tensor)) if tensor.section == "other" or not tensor.slot else None
        if other is None or id(other) in taken:
            pairs.append(TensorPair(target=tensor, golden=None, match="none"))
            continue
        taken.add(id(other))
        method = names.methods.get(tensor.parameter, "exact")
        pairs.append(TensorPair(target=tensor, golden=other, match=method, golden_name=other.name))
    left = [tensor for tensor in golden.tensors if id(tensor) not in taken]
    pairs, left = _fused(names, pairs, left)
    pairs = _tied(pairs, left)
    told = [
        f"{mask_numbers(pair.target.name)} = {mask_numbers(pair.golden_name)}"
        for pair in pairs
        if pair.target is not None and pair.match in ("fused", "tied")
    ]
    return pairs, list(dict.fromkeys([*names.rules, *told]))[:MOST_RULES]


def _key(tensor: CheckpointTensor) -> tuple[str, str, str]:
    return tensor.section, tensor.parameter, _slot(tensor)


def _slot(tensor: CheckpointTensor) -> str:
    return tensor.slot or ("" if tensor.section == "weights" else tensor.name.rpartition(".")[2])


def _shapes(checkpoint: Checkpoint) -> dict[str, Shape | None]:
    """Shapes of parameters, None for one whose shards are not joined; the weights' before those that an optimizer has."""
    found: dict[str, Shape | None] = {}
    for tensor in checkpoint.tensors:
        if tensor.section == "weights":
            found[tensor.parameter] = None if tensor.sharded or tensor.problem else tensor.shape
    for tensor in checkpoint.tensors:
        if tensor.section == "optimizer" and (tensor.shape or tensor.parameter not in found):
            found.setdefault(tensor.parameter, tensor.shape if tensor.shape and not tensor.sharded else None)
    return found


def _by_parameter(checkpoint: Checkpoint) -> dict[str, CheckpointTensor]:
    return {tensor.parameter: tensor for tensor in checkpoint.tensors if tensor.section == "weights"}


def digest(tensor: CheckpointTensor) -> bytes | None:
    """What tells the bytes of a tensor from others'; None for one that is small, constant, in parts or not readable."""
    if tensor.problem or tensor.sharded or len(tensor.pieces) != 1:
        return None
    try:
        array = tensor.pieces[0].read()
    except TensorError:
        return None
    if array.size < LEAST or not array.flags.c_contiguous:
        return None
    flat = array.reshape(-1)
    middle = flat.size // 2
    parts = [np.array(flat[at : at + SAMPLE]).tobytes() for at in (0, middle, max(0, flat.size - SAMPLE))]
    size = array.itemsize
    if all(part == part[:size] * (len(part) // size) for part in parts):
        return None
    return hashlib.blake2b(repr((tensor.dtype, tensor.shape)).encode() + b"".join(parts), digest_size=16).digest()


def _unique(tensors: Iterable[tuple[str, CheckpointTensor]]) -> dict[bytes, str]:
    """Names by digest, only digests that one tensor has."""
    digests = [(name, digest(tensor)) for name, tensor in tensors]
    counts = Counter(value for _, value in digests if value is not None)
    return {value: name for name, value in digests if value is not None and counts[value] == 1}


def _match_bytes(
    names: Names, mine: Mapping[str, CheckpointTensor], theirs: Mapping[str, CheckpointTensor]
) -> list[tuple[str, str]]:
    """Pair tensors without a partner that have the same bytes as exactly one of the other side; returns the pairs."""
    free, others = names.free_targets(), names.free_goldens()
    if not free or not others:
        return []
    first = _unique((name, mine[name]) for name in free if name in mine)
    second = _unique((name, theirs[name]) for name in others if name in theirs)
    found = [(first[value], second[value]) for value in first if value in second]
    for one, other in found:
        names.add(one, other, "content")
    return found


def _fused(
    names: Names, pairs: list[TensorPair], left: list[CheckpointTensor]
) -> tuple[list[TensorPair], list[CheckpointTensor]]:
    """Fused tensors of one side against their parts on the other."""
    if not left:
        return pairs, left
    parents: Counter[tuple[str, str]] = Counter()
    for one, other in names.pairs.items():
        first, second = names.plain[one].split("."), names.plain_golden[other].split(".")
        for cut in range(1, min(len(first), len(second), 4) + 1):
            parents[".".join(first[:-cut]), ".".join(second[:-cut])] += 1
    to_golden: dict[str, str] = {}
    to_target: dict[str, str] = {}
    for (one, other), _ in parents.most_common():
        to_golden.setdefault(one, other)
        to_target.setdefault(other, one)
    free_golden = {_plain(names.plain_golden, tensor): tensor for tensor in left if tensor.section == "weights"}
    free_target = {
        _plain(names.plain, pair.target): pair.target
        for pair in pairs
        if pair.target is not None and pair.golden is None and pair.target.section == "weights"
    }
    made: list[TensorPair] = []
    gone: set[int] = set()
    for name, tensor in free_target.items():
        parent = fused_parent(name)
        parts = find_parts(name, free_golden, to_golden.get(parent, parent)) if parent is not None else []
        joined = join_parts(parts, joined_shape(tensor)) if parts else None
        if joined is not None:
            made.append(TensorPair(target=tensor, golden=joined, match="fused", golden_name=joined.name))
            gone |= {id(tensor), *map(id, parts)}
    for name, tensor in free_golden.items():
        parent = fused_parent(name)
        parts = find_parts(name, free_target, to_target.get(parent, parent)) if parent is not None else []
        joined = join_parts(parts, joined_shape(tensor)) if parts else None
        if joined is not None and id(tensor) not in gone:
            made.append(TensorPair(target=joined, golden=tensor, match="fused", golden_name=tensor.name))
            gone |= {id(tensor), *map(id, parts)}
    kept = [pair for pair in pairs if pair.golden is not None or id(pair.target) not in gone]
    return kept + made, [tensor for tensor in left if id(tensor) not in gone]


def _plain(plain: Mapping[str, str], tensor: CheckpointTensor | None) -> str:
    assert tensor is not None
    return plain.get(tensor.parameter, tensor.parameter)


def _tied(pairs: list[TensorPair], left: list[CheckpointTensor]) -> list[TensorPair]:
    """What one side has under two names and the other under one: compared with that one."""
    targets = _Ties([pair.target for pair in pairs if pair.target is not None and pair.golden is not None])
    goldens = _Ties([pair.golden for pair in pairs if pair.target is not None and pair.golden is not None])
    partner = {id(pair.target): pair.golden for pair in pairs if pair.target is not None}
    owner = {id(pair.golden): pair.target for pair in pairs if pair.golden is not None}
    made: list[TensorPair] = []
    for pair in pairs:
        twin = targets.twin(pair.target) if pair.golden is None and pair.target is not None else None
        other = partner.get(id(twin)) if twin is not None else None
        if other is None:
            made.append(pair)
        else:
            made.append(TensorPair(target=pair.target, golden=other, match="tied", golden_name=other.name))
    for tensor in left:
        twin = goldens.twin(tensor)
        mine = owner.get(id(twin)) if twin is not None else None
        if mine is None:
            made.append(TensorPair(target=None, golden=tensor, match="none", golden_name=tensor.name))
        else:
            made.append(TensorPair(target=mine, golden=tensor, match="tied", golden_name=tensor.name))
    return made


class _Ties:
    """Finds the other name of a tensor among the tensors of its side."""

    def __init__(self, tensors: list[CheckpointTensor | None]) -> None:
        self._tensors = [tensor for tensor in tensors if tensor is not None and tensor.section == "weights"]
        self._stored = {
            tensor.pieces[0].stored: tensor
            for tensor in self._tensors
            if len(tensor.pieces) == 1 and tensor.pieces[0].stored is not None
        }

    def twin(self, tensor: CheckpointTensor) -> CheckpointTensor | None:
        if len(tensor.pieces) != 1 or tensor.section != "weights":
            return None
        found = self._stored.get(tensor.pieces[0].stored) if tensor.pieces[0].stored is not None else None
        if found is not None and found is not tensor:
            return found
        mine = digest(tensor)
        if mine is None:
            return None
        alike = (one for one in self._tensors if (one.shape, one.dtype) == (tensor.shape, tensor.dtype))
        return next((one for one in alike if one is not tensor and digest(one) == mine), None)
