"""A saved call read from disk: its exact arguments, and the call run again as it ran then."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import field
from typing import Any
from zlib import crc32

import torch
from torch.utils._pytree import tree_map_only

from dumpscope_capture.calls.call import differentiable
from dumpscope_capture.calls.held_arguments import writes_in_place
from dumpscope_capture.calls.names import attribute
from dumpscope_capture.older_torch import tree_leaves
from dumpscope_capture.proof.unpacking import Opaque, Unpacker, kind_of, of_torch
from dumpscope_capture.values import live_memory
from dumpscope_format.older_python import dataclass
from dumpscope_format.saved_call import Documents, SavedCallError, read

__all__ = ["Opaque", "SavedCall", "SavedCallError", "load"]


@dataclass(slots=True, kw_only=True)
class SavedCall:
    """A call with its arguments. Tensors that were one object are one object, and views of one memory share it.

    args, kwargs: as the program wrote them; results of other calls are leaves here
    result: None also if the call never returned (see `returned`)
    gradients: of the differentiable tensors in the result, None where none was saved
    """

    documents: Documents
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: Any
    returned: bool
    gradients: list[torch.Tensor | None]
    _written: frozenset[int] = field(default=frozenset())

    @property
    def name(self) -> str:
        return self.documents.call["name"]

    def function(self) -> Callable[..., Any]:
        """The function that was called. Raises SavedCallError where it cannot be imported."""
        name = self.documents.call["api"]["target"]
        if name is None:
            raise SavedCallError(f"{self.name} has no name under which it can be imported")
        head, *rest = name.split(".")
        try:
            found = attribute(importlib.import_module(head), ".".join(rest))
        except ImportError as error:
            raise SavedCallError(f"{name} cannot be imported: {error}") from error
        if not callable(found):
            raise SavedCallError(f"{name} does not exist in torch {torch.__version__}")
        return found  # type: ignore[no-any-return]

    def run(self, function: Callable[..., Any] | None = None) -> Any:
        """Run the call again, with torch's switches and random state as saved.

        Raises SavedCallError where an argument could not be saved.
        """
        missing = [value for value in tree_leaves((self.args, self.kwargs)) if isinstance(value, Opaque)]
        if missing:
            raise SavedCallError(f"{self.name} cannot be run: {missing[0]!r}")
        with self.restored_state():
            args, kwargs = self._arguments()
            return (function or self.function())(*args, **kwargs)

    def backward(self, result: Any) -> list[torch.Tensor | None]:
        """Run the backward of a result with the saved gradients. Returns the gradients of `leaves()`.

        Raises SavedCallError where none was saved.
        """
        tensors = differentiable((result,), {})
        pairs = [
            (tensor, gradient) for tensor, gradient in zip(tensors, self.gradients)
            if gradient is not None and tensor.requires_grad
        ]  # fmt: skip
        if not pairs:
            raise SavedCallError(f"{self.name} has no saved gradients")
        torch.autograd.backward([tensor for tensor, _ in pairs], [gradient for _, gradient in pairs])
        return [tensor.grad for tensor in self.leaves()]

    def leaves(self) -> list[torch.Tensor]:
        """Arguments that require a gradient, in order, without repetition."""
        return list({id(tensor): tensor for tensor in self._tensors() if tensor.requires_grad}.values())

    def _tensors(self) -> list[torch.Tensor]:
        return [value for value in tree_leaves((self.args, self.kwargs)) if isinstance(value, torch.Tensor)]

    def _arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments to run with. If the call writes in place, results of other calls are given as non-leaf copies."""
        if not writes_in_place(self.documents.call["api"]["name"], self.kwargs):
            return self.args, self.kwargs
        again: dict[int, torch.Tensor] = {}

        def through(tensor: torch.Tensor) -> torch.Tensor:
            if id(tensor) not in self._written:
                return tensor
            return again.setdefault(id(tensor), tensor.clone())

        moved: tuple[tuple[Any, ...], dict[str, Any]] = tree_map_only(torch.Tensor, through, (self.args, self.kwargs))
        return moved

    @contextmanager
    def restored_state(self) -> Iterator[None]:
        """Torch's switches and random generators as saved; restored afterwards."""
        call = self.documents.call
        modes = call["modes"]
        with ExitStack() as stack:
            stack.enter_context(torch.random.fork_rng(devices=[]))
            torch.set_rng_state(_bytes(self.documents, call["rng"]["cpu"], None))
            for device, file in call["rng"].items():
                module: Any = getattr(torch, kind_of(device), None)
                if (
                    device != "cpu"
                    and module is not None
                    and module.is_available()
                    and hasattr(module, "set_rng_state")
                ):
                    stack.callback(module.set_rng_state, module.get_rng_state(device), device)
                    module.set_rng_state(_bytes(self.documents, file, None), device)
            stack.enter_context(torch.inference_mode(modes["inference"]))
            stack.enter_context(torch.set_grad_enabled(modes["grad"]))
            stack.callback(
                torch.use_deterministic_algorithms, torch.are_deterministic_algorithms_enabled(),
                warn_only=torch.is_deterministic_algorithms_warn_only_enabled(),
            )  # fmt: skip
            torch.use_deterministic_algorithms(
                modes["deterministic_algorithms"], warn_only=modes["deterministic_warn_only"]
            )
            cudnn = {name: modes[f"cudnn_{name}"] for name in ("enabled", "benchmark", "deterministic")}
            stack.enter_context(torch.backends.cudnn.flags(**cudnn))
            here = {tensor.device.type for tensor in self._tensors()} or {"cpu"}
            for kind, how in call["autocast"].items():
                # autocast of the device applies to the device that the tensors are on now
                device_type = kind if kind in here else "cpu"
                dtype = of_torch(torch.dtype, how["dtype"])
                stack.enter_context(torch.autocast(device_type, dtype=dtype, cache_enabled=how["cache"]))
            yield


def load(path: str | os.PathLike[str], *, device: torch.device | str | None = "cpu") -> SavedCall:
    """Read a saved call. path: its folder, or its call.json; device: of its tensors, None for their original devices.

    Raises SavedCallError where a file is missing or damaged.
    """
    documents = read(path)
    call = documents.call

    def content(name: str, check: str | None) -> torch.Tensor:
        return _bytes(documents, name, check)

    given = Unpacker(call, content, device)
    args = tuple(given.value(value) for value in call["args"])
    kwargs = {key: given.value(value) for key, value in call["kwargs"].items()}
    inner = frozenset(
        id(given.tensor(place))
        for place, entry in enumerate(call["tensors"])
        if entry["requires_grad"] and not entry["leaf"]
    )
    result = gradients = None
    if documents.results is not None:
        result = _detach(Unpacker(documents.results, content, device).value(documents.results["result"]))
    if documents.gradients is not None:
        gradients = Unpacker(documents.gradients, content, device).value(documents.gradients["gradients"])
    return SavedCall(
        documents=documents, args=args, kwargs=kwargs, result=result, returned=documents.results is not None,
        gradients=gradients or [], _written=inner,
    )  # fmt: skip


def _detach(value: Any) -> Any:
    return tree_map_only(torch.Tensor, torch.Tensor.detach, value)


def _bytes(documents: Documents, name: str, check: str | None) -> torch.Tensor:
    """One-dimensional uint8 data of a file. check: its CRC-32, in hexadecimal."""
    path = documents.file(name)
    try:
        data: torch.Tensor = torch.load(path, weights_only=True)
    except Exception as error:  # torch raises a dozen kinds for a damaged file
        raise SavedCallError(f"{path} cannot be read: {str(error).partition(chr(10))[0]}") from error
    if not isinstance(data, torch.Tensor) or data.dtype is not torch.uint8 or data.dim() != 1:
        raise SavedCallError(f"{path} is not one-dimensional uint8 data")
    if check is not None and f"{live_memory.read(data, crc32):08x}" != check:
        raise SavedCallError(f"{path} is damaged: its CRC-32 is not the one noted")
    return data
