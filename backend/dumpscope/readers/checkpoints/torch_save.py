"""Checkpoints of torch.save: nested state dicts, the parts that trainers put around them, and the state of optimizers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import numpy as np

from dumpscope.domain.checkpoints.tensors import CheckpointTensor, Piece, Raw, Section, Shape
from dumpscope.errors import Problem, TensorError
from dumpscope.readers.checkpoints.files import Files, problem_of
from dumpscope.readers.checkpoints.inert_pickle import DIALECT, Foreign
from dumpscope.readers.checkpoints.optimizer_names import name_parameters
from dumpscope.readers.tensors.arrays import LoadedTensor
from dumpscope.readers.tensors.torch_file import open_contents
from dumpscope.readers.tensors.torch_globals import TensorSpec
from dumpscope.texts import say

MODELS: Final = ("state_dict", "model_state_dict", "model", "module", "model_state", "net", "weights")
"""Keys under which trainers keep the weights."""
OPTIMIZERS: Final = ("optim", "optimizer")
"""How keys of optimizers begin."""
MAX_DEPTH: Final = 100
_NESTED_OPTIMIZERS: Final = 4
MAX_VALUES: Final = 1_000_000
"""Values of one file: a list can hold itself many times, and would never end."""
MAX_BUDGET: Final = 1 << 30
"""Bytes of a tensor that must be copied, or inflated, before it can be read."""
_MODULE_WORDS: Final = frozenset({"_modules", "_parameters", "_buffers"})
_SETTINGS: Final = ("lr", "betas", "eps", "weight_decay", "momentum", "initial_lr")

Leaf = TensorSpec | Foreign | int | float


def read_file(
    files: Files, name: str, weights: Mapping[str, Shape] | None = None
) -> tuple[list[CheckpointTensor], list[Problem]]:
    """Tensors of one file of torch.save. weights: shapes of those that an optimizer in it belongs to, from another file.

    Raises TensorError where the file as a whole cannot be read."""
    try:
        value, read = open_contents(files.content(name), DIALECT, budget=MAX_BUDGET)
        return gather(value, Source(files, name, read), weights)
    except TensorError as error:
        error.where = error.where or name
        raise


class Source:
    """Makes pieces of the tensors of one file, which is opened again when a piece is read."""

    def __init__(self, files: Files, name: str, read: Callable[[TensorSpec], LoadedTensor]) -> None:
        self._files = files
        self.name = name
        self._read = read

    def piece(self, spec: TensorSpec) -> Piece:
        def read() -> Raw:
            try:
                return self._read(spec).array
            except TensorError as error:
                error.where = error.where or self.name
                raise

        stored = (str(self._files.folder), self.name, spec.storage.key, spec.storage.view, spec.offset, spec.shape)
        return Piece(shape=spec.shape, place=(0,) * len(spec.shape), read=read, source=self.name, stored=stored)

    def number(self, value: float) -> Piece:
        array = np.array(value)
        array.flags.writeable = False
        return Piece(shape=(), place=(), read=lambda: array, source=self.name)


def gather(
    value: Any, source: Source, known: Mapping[str, Shape] | None = None
) -> tuple[list[CheckpointTensor], list[Problem]]:
    """Tensors of a loaded value. Raises TensorError for a value that never ends."""
    weights, optimizers, others = _parts(value)
    found: list[CheckpointTensor] = []
    problems: list[Problem] = []

    def add(section: Section, name: str, leaf: Leaf, parameter: str = "", slot: str = "") -> None:
        tensor, problem = _tensor(section, name, leaf, source, parameter or name, slot)
        found.append(tensor)
        if problem is not None:
            problems.append(problem)

    named: dict[str, Shape] = dict(known or {})
    for prefix, part in weights:
        for path, leaf in _leaves(part):
            name = ".".join([*prefix, *path]) or "tensor"  # a file that holds one tensor and no name
            if isinstance(leaf, TensorSpec) or (isinstance(leaf, Foreign) and leaf.error is not None):
                add("weights", name, leaf)
            if isinstance(leaf, TensorSpec):
                named[name] = leaf.shape
    for prefix, part in optimizers:
        _optimizer(prefix, part, named, add)
    for prefix, part in others:
        for path, leaf in _leaves(part):
            if isinstance(leaf, TensorSpec):
                add("other", ".".join([*prefix, *path]), leaf)
    return found, problems


def _tensor(
    section: Section, name: str, leaf: Leaf, source: Source, parameter: str, slot: str
) -> tuple[CheckpointTensor, Problem | None]:
    if isinstance(leaf, TensorSpec):
        return CheckpointTensor(
            name=name, dtype=leaf.element.name, shape=leaf.shape, pieces=(source.piece(leaf),),
            section=section, parameter=parameter, slot=slot,
        ), None  # fmt: skip
    if isinstance(leaf, Foreign):
        error = leaf.error or TensorError(
            say("checkpoints.tensor_of_class", name=leaf.name[:120]), kind="unsupported",
            hint=say("checkpoints.save_plain_tensors"),
        )  # fmt: skip
        problem = problem_of(error, f"{source.name}: {name}")
        return CheckpointTensor(
            name=name, dtype="", shape=(), pieces=(), section=section, parameter=parameter, slot=slot,
            problem=error.detail,
        ), problem  # fmt: skip
    kind = "torch.bool" if isinstance(leaf, bool) else "torch.int64" if isinstance(leaf, int) else "torch.float64"
    return CheckpointTensor(
        name=name, dtype=kind, shape=(), pieces=(source.number(leaf),), section=section, parameter=parameter, slot=slot
    ), None


_Parts = list[tuple[list[str], Any]]


def _parts(value: Any) -> tuple[_Parts, _Parts, _Parts]:
    """Weights, optimizers and the rest of a value, each with the words of its name."""
    if type(value) is not dict:
        return [([], value)], [], []
    if is_optimizer(value):
        return [], [([], value)], []
    wrapped = any(key in MODELS and type(part) in (dict, Foreign) for key, part in value.items())
    if not wrapped and any(isinstance(one, TensorSpec) for one in value.values()):
        return [([], value)], [], []
    weights: _Parts = []
    optimizers: _Parts = []
    others: _Parts = []
    for key, part in value.items():
        word = str(key)
        if word.lower().startswith(OPTIMIZERS) and type(part) in (dict, list):
            optimizers.append(([], part))
        elif word in MODELS and type(part) in (dict, Foreign):
            weights.append(([] if not weights else [word], _innermost(part)))
        elif type(part) in (dict, list, tuple, Foreign, TensorSpec):
            others.append(([word], part))
    if not weights:
        models = [part for part in others if type(part[1]) in (dict, Foreign)]
        return models, optimizers, [part for part in others if type(part[1]) not in (dict, Foreign)]
    return weights, optimizers, others


def _innermost(part: Any) -> Any:
    """The state dict inside of parts that hold nothing but it: {"model": {"state_dict": ...}}."""
    for _ in range(MAX_DEPTH):
        if type(part) is not dict or any(isinstance(one, TensorSpec) for one in part.values()):
            break
        inner = [key for key in part if key in MODELS and type(part[key]) is dict]
        if len(inner) != 1 or any(type(one) is dict for key, one in part.items() if key != inner[0]):
            break
        part = part[inner[0]]
    return part


def is_optimizer(value: Any) -> bool:
    """Whether a value is the state of an optimizer of torch."""
    return type(value) is dict and type(value.get("state")) is dict and type(value.get("param_groups")) is list


def _optimizer(
    prefix: list[str], value: Any, weights: Mapping[str, Shape], add: Callable[..., None], depth: int = 0
) -> None:
    """Add the state of an optimizer, or of several, by the names of their parameters."""
    if depth > _NESTED_OPTIMIZERS:
        raise _endless()
    if not is_optimizer(value):
        parts = list(value.items() if type(value) is dict else enumerate(value) if type(value) is list else ())
        for key, one in parts:
            path = [*prefix, str(key)] if len(parts) > 1 else prefix
            if isinstance(one, TensorSpec):
                add("optimizer", ".".join(["optimizer", *prefix, str(key)]), one)
            elif type(one) in (dict, list):
                _optimizer(path, one, weights, add, depth + 1)
        return
    shapes = {
        key: next((one.shape for one in slots.values() if isinstance(one, TensorSpec) and one.shape), ())
        for key, slots in value["state"].items()
        if type(slots) is dict
    }
    names = name_parameters(value["param_groups"], shapes, weights)
    for key, slots in value["state"].items():
        parameter = names.get(key, f"parameter {key}" if type(key) is int else str(key))
        if type(slots) is not dict:
            continue
        for path, leaf in _leaves(slots):
            slot = ".".join(path)
            add("optimizer", ".".join(["optimizer", *prefix, parameter, slot]), leaf, parameter, slot)
    for number, group in enumerate(value["param_groups"]):
        settings = {key: group[key] for key in _SETTINGS if key in group} if type(group) is dict else {}
        for path, leaf in _leaves(settings):
            add("optimizer", ".".join(["optimizer", *prefix, "param_groups", str(number), *path]), leaf)


def _leaves(value: Any) -> Iterator[tuple[list[str], Leaf]]:
    """Tensors, numbers and what could not be described, each with its path. Raises TensorError for a value that never ends."""
    waiting: list[tuple[tuple[str, ...], Any]] = [((), value)]
    for _ in range(MAX_VALUES):
        if not waiting:
            return
        path, one = waiting.pop()
        kind = type(one)
        if kind is TensorSpec or kind in (int, float, bool) or (kind is Foreign and one.error is not None):
            yield list(path), one
            continue
        inner: Iterable[tuple[Any, Any]] = ()
        if kind is dict or kind is Foreign:
            inner = (one if kind is dict else one.attributes).items()
        elif kind in (list, tuple):
            inner = enumerate(one)
        found = [(path if key in _MODULE_WORDS else (*path, str(key)), part) for key, part in inner]
        if found and (len(path) > MAX_DEPTH or len(waiting) > MAX_VALUES):
            raise _endless()
        waiting += reversed(found)
    raise _endless()


def _endless() -> TensorError:
    return TensorError(
        say("checkpoints.value_never_ends", count=f"{MAX_VALUES:,}"), kind="refused",
        hint=say("checkpoints.save_plain_tensors"),
    )  # fmt: skip
