"""Runs one call differently: on the CPU, in another type, with other layouts, forward and backward.

    arguments --converted in the graph--> the same function --results converted back to their usual type and device-->

Conversions are differentiable, so the backward of the function runs like its forward, and gradients arrive in the type and on the
device of the arguments. Writes into converted arguments are copied back to the program's tensors. A call that cannot be run
differently without side effects is refused and runs as usual.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING, Any, Final

import torch
from torch.utils._python_dispatch import is_traceable_wrapper_subclass
from torch.utils._pytree import tree_flatten, tree_map_only, tree_unflatten

from dumpscope_capture.calls.held_arguments import writes_in_place
from dumpscope_capture.older_torch import autocast_dtype, tree_leaves
from dumpscope_capture.values.provenance import parameter_names
from dumpscope_format.interventions import Treatment, words

if TYPE_CHECKING:
    from typing import TypeAlias

Arguments: TypeAlias = "tuple[tuple[Any, ...], dict[str, Any]]"

_TYPES: Final = {"float32": torch.float32, "float64": torch.float64}
_COMPLEX: Final = {torch.float32: torch.complex64, torch.float64: torch.complex128}
_MOVES: Final = frozenset(("to", "cpu", "cuda", "npu", "xpu", "type", "numpy", "pin_memory", "requires_grad_", "backward", "set_",
                           "detach_", "share_memory_"))  # fmt: skip
"""Functions that move data or change the nature of a tensor."""

_QUIET: Final = ("running_mean", "running_var")
"""Arguments that torch's normalizations write without increasing the tensor's version."""

_ND: Final = 2
"""Number of the plain storage format on an NPU."""


class Refused(Exception):
    """Why a call cannot be run differently."""


class Unchanged(Exception):
    """The arguments already have the form that the treatment wants."""


def substitute(
    treatment: Treatment | Callable[..., Any],
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Run a function differently.

    treatment: see `dumpscope_format.interventions`, or a callable `(function, *args, **kwargs)`
    Raises Refused or Unchanged, without side effects, where the function cannot or need not run differently.
    """
    if isinstance(treatment, Mapping):
        args, kwargs = _with_scalars(treatment, function, args, kwargs)
        return function(*args, **kwargs)
    if not isinstance(treatment, str):
        return treatment(function, *args, **kwargs)
    return _Run(words(treatment), function).run(args, kwargs)


class _Run:
    """One converted call."""

    def __init__(self, wanted: tuple[str, ...], function: Callable[..., Any]) -> None:
        self._words = wanted
        self._function = function
        self._name = getattr(function, "__name__", "")
        self._dtype = next((_TYPES[word] for word in wanted if word in _TYPES), None)
        self._pairs: list[tuple[torch.Tensor, torch.Tensor, int | None]] = []
        self._known: dict[int, torch.Tensor] = {}

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._name in _MOVES:
            raise Refused(f"{self._name} moves data")
        tensors = [value for value in tree_leaves((args, kwargs)) if isinstance(value, torch.Tensor)]
        for tensor in tensors:
            _check(tensor)
        device = next((tensor.device for tensor in tensors if tensor.device.type != "cpu"), torch.device("cpu"))
        try:
            given: Arguments = tree_map_only(torch.Tensor, self._convert, (args, kwargs))
        except (RuntimeError, NotImplementedError) as error:
            raise Refused(f"its arguments cannot be converted: {_line(error)}") from error
        if not self._pairs:
            raise Unchanged
        moves = "cpu" in self._words and device.type != "cpu"
        types = (
            self._types(args, kwargs, device)
            if self._dtype is not None or (moves and autocast_dtype(device.type) is not None)
            else None
        )
        states = _states(device) if moves or self._dtype is not None else None
        try:
            with self._autocast_state(device, moves=moves):
                result = self._function(*given[0], **given[1])
        except (RuntimeError, NotImplementedError, TypeError) as error:
            _restore(states)
            raise Refused(f"it does not run this way: {_line(error)}") from error
        self._refuse_side_effects(result, states)
        self._write_back(given)
        return self._back(result, device if moves else None, types)

    # -- arguments -----------------------------------------------------------------------------------------------------

    def _convert(self, tensor: torch.Tensor) -> torch.Tensor:
        """A converted tensor; the same object for the same tensor."""
        known = self._known.get(id(tensor))
        if known is None:
            known = tensor
            for word in self._words:
                known = self._apply(word, known)
            self._known[id(tensor)] = known
            if known is not tensor:
                self._pairs.append((tensor, known, _version(known)))
        return known

    def _apply(self, word: str, tensor: torch.Tensor) -> torch.Tensor:
        if word == "cpu":
            return tensor.to("cpu")
        if word == "contiguous":
            return tensor.contiguous()
        if word == "roundtrip":
            return _round(tensor)
        if word == "format":
            return _plain(tensor)
        assert self._dtype is not None
        if tensor.is_floating_point():
            return tensor.to(self._dtype)
        return tensor.to(_COMPLEX[self._dtype]) if tensor.is_complex() else tensor

    def _autocast_state(self, device: torch.device, *, moves: bool) -> AbstractContextManager[Any]:
        """Autocast state: off if the treatment names a type; on the CPU as on the device."""
        stack = ExitStack()
        kind = device.type
        if self._dtype is not None:
            for one in {kind, "cpu"}:
                if autocast_dtype(one) is not None:
                    stack.enter_context(torch.autocast(one, enabled=False))
        elif moves and (dtype := autocast_dtype(kind)) is not None:
            stack.enter_context(torch.autocast("cpu", dtype=dtype))
        return stack

    # -- results -------------------------------------------------------------------------------------------------------

    def _types(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], device: torch.device
    ) -> list[torch.dtype] | torch.dtype:
        """Types that the results of the unchanged call would have: one for each tensor, or if unknown one for all floats."""
        dtype = autocast_dtype(device.type)
        stand_in = device if dtype is not None else torch.device("meta")
        try:
            with ExitStack() as stack, torch.no_grad():
                if stand_in.type != "meta":
                    from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: PLC0415 - takes a second

                    stack.enter_context(FakeTensorMode())
                    stack.enter_context(torch.autocast(device.type, dtype=dtype))
                empty: Arguments = tree_map_only(
                    torch.Tensor,
                    lambda one: torch.empty_strided(one.size(), one.stride(), dtype=one.dtype, device=stand_in),
                    (args, kwargs),
                )
                result = self._function(*empty[0], **empty[1])
            return [value.dtype for value in tree_leaves(result) if isinstance(value, torch.Tensor)]
        except Exception:  # the function reads values, or has no shape rule
            floats = [value.dtype for value in tree_leaves((args, kwargs)) if isinstance(value, torch.Tensor)]
            floats = [dtype for dtype in floats if dtype.is_floating_point]
            common = floats[0] if floats else torch.get_default_dtype()
            for dtype in floats[1:]:
                common = torch.promote_types(common, dtype)
            return common

    def _refuse_side_effects(self, result: Any, states: Any) -> None:
        """Refuse calls that draw random numbers or return views: with converted arguments these would change later calls."""
        if states is not None and _have_changed(states):
            _restore(states)
            raise Refused("it draws random numbers, which would be others")
        made = {_storage(converted) for _, converted, _ in self._pairs}
        mine = {id(converted) for _, converted, _ in self._pairs}
        for value in tree_leaves(result):
            if isinstance(value, torch.Tensor) and id(value) not in mine and _storage(value) in made:
                raise Refused("its result shares memory with its argument")

    def _write_back(self, given: Arguments) -> None:
        """Copy what the function wrote into converted arguments to the program's tensors."""
        names = parameter_names(self._function)
        named = {**dict(zip(names, given[0])), **given[1]}
        quiet = {id(named[name]) for name in _QUIET if isinstance(named.get(name), torch.Tensor)}
        written = [*given[0][:1], given[1].get("out")] if writes_in_place(self._name, given[1]) else []
        unsure = {id(value) for value in tree_leaves(written)}
        for original, converted, version in self._pairs:
            changed = id(converted) in unsure if version is None else _version(converted) != version
            if not changed and id(converted) in quiet:
                changed = not torch.equal(original, converted.to(original))
            if changed:
                if original.shape != converted.shape:
                    original.resize_(converted.shape)  # an `out` that had another shape
                original.copy_(converted)

    def _back(self, result: Any, device: torch.device | None, types: list[torch.dtype] | torch.dtype | None) -> Any:
        leaves, spec = tree_flatten(result)
        originals = {id(converted): original for original, converted, _ in self._pairs}
        number = 0
        for at, value in enumerate(leaves):
            if not isinstance(value, torch.Tensor):
                continue
            if id(value) in originals:
                leaves[at] = originals[id(value)]
            elif "roundtrip" in self._words:
                leaves[at] = _round(value)
            else:
                wanted = value.dtype
                if isinstance(types, list):
                    wanted = types[number] if number < len(types) else wanted
                elif types is not None and value.is_floating_point():
                    wanted = types
                leaves[at] = value.to(device=device if device is not None else value.device, dtype=wanted)
            number += 1
            if "contiguous" in self._words and leaves[at].requires_grad and leaves[at].grad_fn is not None:
                leaves[at].register_hook(_contiguous)
        return tree_unflatten(leaves, spec)


def _contiguous(gradient: torch.Tensor) -> torch.Tensor:
    return gradient.contiguous()


def _check(tensor: torch.Tensor) -> None:
    if tensor.layout is not torch.strided or tensor.is_nested or tensor.is_quantized:
        raise Refused("an argument is sparse, nested or quantized")
    if is_traceable_wrapper_subclass(tensor) or torch._C._functorch.maybe_get_level(tensor) != -1:
        raise Refused(f"an argument is a {type(tensor).__name__}, or belongs to a function transform")


def _round(tensor: torch.Tensor) -> torch.Tensor:
    """A copy on the same device, through the host."""
    return tensor.clone() if tensor.device.type == "cpu" else tensor.to("cpu").to(tensor.device)


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    npu: Any = sys.modules.get("torch_npu")
    if tensor.device.type != "npu" or npu is None:
        raise Refused(f"tensors on {tensor.device.type} have no storage format")
    return tensor if npu.get_npu_format(tensor) == _ND else npu.npu_format_cast(tensor, _ND)


def _version(tensor: torch.Tensor) -> int | None:
    return None if tensor.is_inference() else tensor._version


def _storage(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def _line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0][:200] or type(error).__name__


# -- random numbers ----------------------------------------------------------------------------------------------------


def _generators(device: torch.device) -> list[tuple[Callable[[], torch.Tensor], Callable[[torch.Tensor], None]]]:
    found: list[Any] = [(torch.get_rng_state, torch.set_rng_state)]
    module: Any = getattr(torch, device.type, None)
    if device.type != "cpu" and hasattr(module, "get_rng_state") and hasattr(module, "set_rng_state"):
        found.append((lambda: module.get_rng_state(device), lambda state: module.set_rng_state(state, device)))
    return found


def _states(device: torch.device) -> list[Any]:
    return [(get, put, get()) for get, put in _generators(device)]


def _have_changed(states: list[Any]) -> bool:
    return any(not torch.equal(get(), before) for get, _, before in states)


def _restore(states: list[Any] | None) -> None:
    for _, put, before in states or []:
        put(before)


# -- scalars -----------------------------------------------------------------------------------------------------------


def _with_scalars(
    changes: Mapping[str, Any], function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Arguments:
    """Arguments with those in `changes` replaced, whether they were positional, named or omitted."""
    names = parameter_names(function)
    positional = list(args)
    named = dict(kwargs)
    for name, value in changes.items():
        if name in named:
            named[name] = value
        elif name in names and names.index(name) < len(positional):
            positional[names.index(name)] = value
        elif name in names or not names:
            named[name] = value
        else:
            raise Refused(f"it has no argument {name!r}")
    return tuple(positional), named
