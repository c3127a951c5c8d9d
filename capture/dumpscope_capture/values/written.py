"""What a call writes into: arguments and buffers whose content is another one after it.

Told by the version that torch counts up with every write. Running statistics of batch norm are written without a new version, and
tensors of inference mode have none; there the function's name tells.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import torch

_UNCOUNTED: Final = -1
_NORMS: Final = frozenset(("batch_norm", "native_batch_norm", "_batch_norm_impl_index"))
_STATISTICS: Final = (("running_mean", 1), ("running_var", 2))
"""Argument of a batch norm that is written in training, and its place."""
_TRAINING: Final = 5
"""Place of `training` among the arguments of `batch_norm`."""


class Writes:
    """Tensors that a call may write into, as they were before it.

    buffers: the module's own, by name; sure: paths that the call writes whether or not a version says so
    """

    __slots__ = ("_found", "_sure")

    def __init__(
        self,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        *,
        buffers: Mapping[str, torch.Tensor | None] | None = None,
        sure: tuple[str, ...] = (),
    ) -> None:
        self._sure = sure
        self._found = [
            (path, tensor, _version(tensor))
            for head, values in (
                ("input", enumerate(args)),
                ("kwargs", kwargs.items()),
                ("buffers", (buffers or {}).items()),
            )
            for path, tensor in _tensors(head, values)
        ]

    def after(self, result: Any) -> dict[str, torch.Tensor]:
        """The written tensors by path, `input.1`, `kwargs.out`, `buffers.running_mean`; without those that the call returns."""
        changed = {
            path: tensor
            for path, tensor, version in self._found
            if path in self._sure or (version != _UNCOUNTED and _version(tensor) != version)
        }
        if changed:
            returned = {id(part) for _, part in _tensors("", enumerate([result]))}
            changed = {path: tensor for path, tensor in changed.items() if id(tensor) not in returned}
        return changed


def surely_written(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, in_place: bool) -> tuple[str, ...]:
    """Paths of arguments that a function writes without a new version. in_place: its name or arguments say that it writes"""
    if name in _NORMS:
        if not (kwargs["training"] if "training" in kwargs else len(args) > _TRAINING and args[_TRAINING]):
            return ()
        return tuple(f"kwargs.{key}" if key in kwargs else f"input.{place}" for key, place in _STATISTICS)
    if in_place and torch.is_inference_mode_enabled():
        return ("input.0", "kwargs.out")
    return ()


def buffers_of(module: torch.nn.Module) -> tuple[Mapping[str, torch.Tensor | None], tuple[str, ...]]:
    """A module's own buffers, and paths of those that its forward surely writes."""
    buffers = module._buffers
    norm = isinstance(module, torch.nn.modules.batchnorm._NormBase) and module.training
    return buffers, tuple(f"buffers.{name}" for name, _ in _STATISTICS if norm and buffers.get(name) is not None)


def _tensors(head: str, values: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """Tensors and their paths, also one container below."""
    for key, value in values:
        if isinstance(value, torch.Tensor):
            yield f"{head}.{key}", value
        elif isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
            yield from ((f"{head}.{key}.{n}", part) for n, part in enumerate(value) if isinstance(part, torch.Tensor))


def _version(tensor: torch.Tensor) -> int:
    try:
        return tensor._version
    except (RuntimeError, NotImplementedError):  # of inference mode
        return _UNCOUNTED
