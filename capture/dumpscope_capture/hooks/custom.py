"""Calls that the user registers: `register_custom_api(module, "function", "Prefix")`."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, Final

from dumpscope_capture.calls.names import Api
from dumpscope_capture.config import ConfigError
from dumpscope_capture.record.recording import Recording
from dumpscope_format.older_python import dataclass

_INHERITED: Final = object()
"""Marks an attribute that the owner inherits from its class or a base class."""


@dataclass(frozen=True, slots=True)
class _Replacement:
    """The old value of `owner.name` in the owner's own `__dict__`."""

    owner: Any
    name: str
    own: Any

    def put_back(self) -> None:
        if self.own is _INHERITED:
            delattr(self.owner, self.name)
        else:
            setattr(self.owner, self.name, self.own)


class CustomCalls:
    """Attributes replaced by recording wrappers, and how to put them back."""

    def __init__(self) -> None:
        self.recording: Recording | None = None
        self._replaced: dict[tuple[int, str], _Replacement] = {}

    def register(self, module: Any, api: str, prefix: str | None) -> None:
        """Raises ConfigError where the module has no such callable."""
        if not isinstance(api, str) or not callable(getattr(module, api, None)):
            raise ConfigError("api", api, f"the name of a callable attribute of {module!r}")
        if prefix is not None and (not isinstance(prefix, str) or not prefix):
            raise ConfigError("api_prefix", prefix, "a text, or None for the module's name")
        key = (id(module), api)
        if key in self._replaced:
            return
        label = prefix or getattr(module, "__name__", None) or "Custom"
        function = _function(module, api)
        wrapper: Any = self._wrap(function, Api(prefix=label, name=api, function=function, custom=True))
        if isinstance(module, type):
            kind = type(inspect.getattr_static(module, api))
            wrapper = kind(wrapper) if kind in (staticmethod, classmethod) else wrapper
        replaced = _Replacement(module, api, getattr(module, "__dict__", {}).get(api, _INHERITED))
        setattr(module, api, wrapper)
        self._replaced[key] = replaced

    def restore(self, module: Any, api: str) -> None:
        found = self._replaced.pop((id(module), api), None)
        if found is not None:
            found.put_back()

    def _wrap(self, function: Callable[..., Any], api: Api) -> Callable[..., Any]:
        @wraps(function)
        def call_recorded(*args: Any, **kwargs: Any) -> Any:
            recording = self.recording
            if recording is None or not recording.active or recording.thread_state.inside or recording.functions_off:
                return function(*args, **kwargs)
            call = None
            with recording.errors.guard("a call's arguments"):
                call = recording.begin_call(api, args, kwargs, sys._getframe(1))
            recording.thread_state.inside += 1
            try:
                result = function(*args, **kwargs) if call is None else recording.run(call, function, args, kwargs)
            except BaseException:
                if call is not None:
                    recording.fail_call(call)
                raise
            finally:
                recording.thread_state.inside -= 1
            if call is not None:
                with recording.errors.guard("a call's results"):
                    recording.end_call(call, result)
            return result

        return call_recorded


def _function(module: Any, api: str) -> Callable[..., Any]:
    """The function behind an attribute; for a class method the plain function, which takes the class."""
    found: Callable[..., Any] = getattr(module, api)
    if isinstance(module, type) and isinstance(static := inspect.getattr_static(module, api), classmethod):
        found = static.__func__
    return found
