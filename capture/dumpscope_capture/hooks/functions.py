"""Calls of functions: a function mode that sees each outermost listed call of its thread and replaces nothing.

`F.gelu` stays `F.gelu`, and functions that the program imported by name are seen too. The mode is off while a listed call runs,
so calls inside it are not recorded. A Python function that is not listed runs with the mode on, as a copy ("twin") that does not
offer its call to the mode again.
"""

from __future__ import annotations

import sys
import time
import types
from collections.abc import Callable
from typing import Any, Dict, Final, Protocol

import torch
from torch.overrides import TorchFunctionMode

from dumpscope_capture.calls import callsite
from dumpscope_capture.calls.call import STOP, Call, ThreadState
from dumpscope_capture.calls.names import Api, Table
from dumpscope_capture.context import HookErrors
from dumpscope_capture.values.uninitialised import MAKERS

DROPPED_SECONDS: Final = 0.2
"""How long the end of a capture waits for threads of torch."""

_OFFERS: Final = ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic")


class CallHandler(Protocol):
    """Takes listed calls: a recording, or the call counter if no recording runs."""

    errors: HookErrors
    thread_state: ThreadState
    functions_off: bool

    @property
    def active(self) -> bool: ...

    def begin_call(
        self, api: Api, args: tuple[Any, ...], kwargs: dict[str, Any], frame: types.FrameType | None
    ) -> Call: ...

    def run(self, call: Call, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any: ...

    def end_call(self, call: Call, result: Any) -> None: ...

    def note_uninitialised(self, result: Any) -> None: ...

    def stop_call(self, call: Call) -> None: ...

    def fail_call(self, call: Call) -> None: ...

    def note_exception(self, error: BaseException) -> None: ...


class FunctionMode(TorchFunctionMode):
    """Records listed calls. One instance serves one thread at a time.

    idle: recording is over, but the mode could not be removed from its thread
    """

    def __init__(self, table: Table, recording: CallHandler) -> None:
        super().__init__()
        self.idle = False
        self._table = table
        self._recording = recording
        self._errors: HookErrors = recording.errors

    def __torch_function__(
        self, func: Any, types_: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if type(func) is types.MethodWrapperType:  # attributes such as `tensor.grad` are no calls
            return func(*args, **kwargs)
        recording = self._recording
        call = None
        try:
            if recording.active and not self.idle and not recording.thread_state.inside and not recording.functions_off:
                frame = sys._getframe(1)
                while (
                    frame.f_code.co_name == "__torch_function__" and frame.f_back is not None
                ):  # of a mode above this one
                    frame = frame.f_back
                api = self._table.find(func, frame, args)
                if api is not None:
                    given, named, frame = _as_written(func, api.function, frame, args, kwargs)
                    call = recording.begin_call(api, given, named, frame)
        except Exception as error:
            self._errors.note("a call's arguments", error)
        if call is None:
            twin = _twin(func) if type(func) is types.FunctionType else None
            try:
                if twin is None:
                    result = func(*args, **kwargs)
                    if getattr(func, "__name__", "") in MAKERS:
                        recording.note_uninitialised(result)
                    return result
                with self:
                    return twin(*args, **kwargs)
            except Exception as error:
                recording.note_exception(error)
                raise
        try:
            result = recording.run(call, func, args, kwargs)
        except BaseException as error:
            if type(error).__name__ == STOP:
                recording.stop_call(call)
            else:
                recording.fail_call(call)
            raise
        try:
            recording.end_call(call, result)
        except Exception as error:
            self._errors.note("a call's results", error)
        return result


def enter(mode: FunctionMode) -> None:
    """Push a mode below all others of this thread, so that `with torch.device(...)` blocks can still begin and end."""
    for other in mode_stack():
        if isinstance(other, FunctionMode) and other.idle:
            leave(other)
    above = [torch._C._pop_torch_function_stack() for _ in range(torch._C._len_torch_function_stack())]
    torch._C._push_on_torch_function_stack(mode)
    for other in reversed(above):
        torch._C._push_on_torch_function_stack(other)


def lift() -> list[FunctionMode]:
    """Take the modes that record this thread off its stack, for `lay`."""
    stack = [torch._C._pop_torch_function_stack() for _ in range(torch._C._len_torch_function_stack())]
    for other in reversed(stack):
        if not isinstance(other, FunctionMode):
            torch._C._push_on_torch_function_stack(other)
    return [mode for mode in reversed(stack) if isinstance(mode, FunctionMode)]


def lay(modes: list[FunctionMode]) -> None:
    """Put the modes of `lift` back, below all others; those that have become idle since are left out."""
    on_stack = mode_stack()
    for mode in reversed(modes):
        if not mode.idle and not any(other is mode for other in on_stack):
            enter(mode)


def mode_stack() -> list[Any]:
    """Function modes of this thread, the outermost first."""
    return [torch._C._get_function_stack_at(place) for place in range(torch._C._len_torch_function_stack())]


def leave(mode: FunctionMode) -> bool:
    """Remove a mode from this thread's stack, at any position. False where it is not on this stack; it is idle then."""
    mode.idle = True
    return take_off(mode)


def take_off(mode: FunctionMode) -> bool:
    """Take a mode off this thread's stack, at any position; it may be entered again. False where it is not on this stack."""
    if not any(other is mode for other in mode_stack()):
        return False
    above = []
    while (other := torch._C._pop_torch_function_stack()) is not mode:
        above.append(other)
    for other in reversed(above):
        torch._C._push_on_torch_function_stack(other)
    return True


def count_holders(mode: FunctionMode) -> int:
    """References to a mode, to compare with later."""
    return sys.getrefcount(mode)


def wait_until_dropped(mode: FunctionMode, held: int) -> None:
    """Let threads of torch drop a mode that left its stack. A work of gloo keeps the modes that it began under; its thread drops
    them with the work, for which it needs the interpreter's lock. A process group that is destroyed meanwhile holds that lock
    and waits for the thread: for ever. held: references before the mode was entered"""
    distributed = torch.distributed
    if not (distributed.is_available() and distributed.is_initialized()):
        return
    end = time.monotonic() + DROPPED_SECONDS
    while sys.getrefcount(mode) > held and time.monotonic() < end:
        time.sleep(0.001)


def _as_written(
    func: Any, listed: Any, frame: types.FrameType, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any], types.FrameType]:
    """Arguments as the program wrote them, and the program's frame. Python functions pass their arguments on in another form."""
    function = listed if isinstance(listed, types.FunctionType) else func
    if not isinstance(function, types.FunctionType):
        return args, kwargs, frame
    own = callsite.frame_of(function, frame)
    if own is None:
        return args, kwargs, frame
    written = callsite.split_arguments(function, own, method=function.__qualname__.startswith("Tensor."))
    outer = own.f_back or own
    return (*written, outer) if written is not None else (args, kwargs, outer)


# -- functions that are not listed -------------------------------------------------------------------------------------

_twins: dict[types.FunctionType, Callable[..., Any] | None] = {}


class _Globals(Dict[str, Any]):
    """A live view of a function's globals in which no call is offered to a mode.

    asks_torch: the function asks `torch.overrides`, not a name of its own module; helpers: twins of functions that it calls
    """

    def __init__(self, real: dict[str, Any], *, asks_torch: bool, helpers: dict[str, Callable[..., Any]]) -> None:
        super().__init__()
        self._real = real
        self._asks_torch = asks_torch
        self._helpers = helpers
        self["__builtins__"] = real["__builtins__"]

    def __getitem__(self, name: str) -> Any:
        if name == "torch" and self._asks_torch:
            return _TORCH
        if name == "overrides" and self._real[name] is torch.overrides:
            return _OVERRIDES
        if name in self._helpers:
            return self._helpers[name]
        return _never if name in _OFFERS else self._real[name]


class _Stand:
    """Stands for a module, with some attributes replaced."""

    def __init__(self, module: Any, **replaced: Any) -> None:
        self.__dict__.update(replaced)
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


def _never(*tensors: Any) -> bool:
    return False


_OVERRIDES: Final = _Stand(torch.overrides, **dict.fromkeys(_OFFERS, _never))
"""`torch.overrides` for functions that ask `overrides.has_torch_function(...)`, as `torch.sym_max` does."""

_TORCH: Final = _Stand(torch, overrides=_OVERRIDES)
"""`torch` for functions that ask `torch.overrides.has_torch_function(...)`, as those of `torch.nn.init` do."""


def _twin(function: types.FunctionType) -> Callable[..., Any] | None:
    """A copy of a Python function that does not offer its call to modes; None where the function makes no such offer. The offer
    may be made by a helper that it calls (`torch.meshgrid`), or between which it chooses (`torch.unique`)."""
    if function in _twins:
        return _twins[function]
    _twins[function] = None  # for a helper that calls it
    names = function.__code__.co_names
    asked = [name for name in _OFFERS if name in names]
    asks = any(name in function.__globals__ for name in asked) or (
        bool(asked) and "overrides" in names and function.__globals__.get("overrides") is torch.overrides
    )
    asks_torch = bool(asked) and not asks and "overrides" in names and function.__globals__.get("torch") is torch
    helpers = {name: twin for name in names if (twin := _helper(name, function.__globals__)) is not None}
    cells = tuple(map(_cell, function.__closure__ or ()))
    chooses = any(one is not other for one, other in zip(cells, function.__closure__ or ()))
    if ((asks or asks_torch) and _offers(names, function.__globals__)) or helpers or chooses:
        twin = types.FunctionType(
            function.__code__,
            _Globals(function.__globals__, asks_torch=asks_torch, helpers=helpers),
            function.__name__,
            function.__defaults__,
            cells,
        )
        twin.__kwdefaults__ = function.__kwdefaults__
        _twins[function] = twin
    return _twins[function]


def _offers(names: tuple[str, ...], scope: dict[str, Any]) -> bool:
    """Whether code with these names offers its call, itself or by a helper that does nothing else."""
    offer = "handle_torch_function"
    inner = (getattr(scope.get(name), "__code__", None) for name in names if name.startswith("_"))
    return offer in names or any(code is not None and offer in code.co_names for code in inner)


def _helper(name: str, scope: dict[str, Any]) -> Callable[..., Any] | None:
    """The twin of a function that is no API of its own: its name begins with `_`."""
    function = scope.get(name) if name.startswith("_") else None
    return _twin(function) if type(function) is types.FunctionType else None


def _cell(cell: Any) -> Any:
    """A closure's cell, with a function in it replaced by its twin."""
    try:
        function = cell.cell_contents
    except ValueError:  # empty
        return cell
    twin = _twin(function) if type(function) is types.FunctionType else None
    return cell if twin is None else types.CellType(twin)
