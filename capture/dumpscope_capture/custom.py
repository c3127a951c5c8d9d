"""Calls the user names: `register_custom_api(module, "function", "Prefix")`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

from dumpscope_capture.config import ConfigError
from dumpscope_capture.names import Api

if TYPE_CHECKING:
    from dumpscope_capture.session import Session


class CustomCalls:
    """Attributes replaced by recording wrappers, and how to put them back."""

    def __init__(self) -> None:
        self.session: Session | None = None
        self._originals: dict[tuple[int, str], tuple[Any, Any]] = {}

    def register(self, module: Any, api: str, prefix: str | None) -> None:
        """Raises ConfigError where the module has no such callable."""
        if not isinstance(api, str) or not callable(getattr(module, api, None)):
            raise ConfigError("api", api, f"the name of a callable attribute of {module!r}")
        if prefix is not None and (not isinstance(prefix, str) or not prefix):
            raise ConfigError("api_prefix", prefix, "a text, or None for the module's name")
        key = (id(module), api)
        if key in self._originals:
            return
        function = getattr(module, api)
        label = prefix or getattr(module, "__name__", None) or "Custom"
        self._originals[key] = (module, function)
        setattr(module, api, self._wrapped(function, Api(prefix=label, name=api, function=function)))

    def restore(self, module: Any, api: str) -> None:
        found = self._originals.pop((id(module), api), None)
        if found is not None:
            setattr(module, api, found[1])

    def _wrapped(self, function: Callable[..., Any], api: Api) -> Callable[..., Any]:
        @wraps(function)
        def call_recorded(*args: Any, **kwargs: Any) -> Any:
            session = self.session
            recording = session.recording if session is not None else None
            if recording is None or not recording.active or recording.place.inside:
                return function(*args, **kwargs)
            call = None
            with recording.faults.guard("a call's arguments"):
                call = recording.begin_call(api, args, kwargs, sys._getframe(1))
            recording.place.inside += 1
            try:
                result = function(*args, **kwargs)
            except BaseException:
                if call is not None:
                    recording.fail_call(call)
                raise
            finally:
                recording.place.inside -= 1
            if call is not None:
                with recording.faults.guard("a call's results"):
                    recording.end_call(call, result)
            return result

        return call_recorded
