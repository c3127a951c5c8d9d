"""Settings that ptdbg's own functions lack: generation, layout, listed calls. Arguments take precedence over variables."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Final

from dumpscope_capture.calls.names import WrapList, read_list
from dumpscope_capture.config import ConfigError
from dumpscope_capture.ptdbg.errors import ParameterError
from dumpscope_capture.ptdbg.generations import GENERATIONS
from dumpscope_format.older_python import dataclass

LAYOUTS: Final = ("ptdbg", "msprobe")
GENERATION: Final = "DUMPSCOPE_PTDBG_GENERATION"
LAYOUT: Final = "DUMPSCOPE_PTDBG_LAYOUT"
_NAMESPACES: Final = ("_C_ascend",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """generation: None if the path decides; wrap_ops: file with a list of calls, None for the built-in list
    leave_out: names of operators that are not recorded"""

    generation: str | None = None
    layout: str = "ptdbg"
    wrap_ops: str | None = None
    leave_out: tuple[str, ...] = ()

    def with_changes(
        self,
        generation: str | None,
        layout: str | None,
        wrap_ops: str | None,
        leave_out: list[str] | tuple[str, ...] | None,
    ) -> Settings:
        """A copy with the arguments that are not None. Raises ParameterError."""
        found = self
        if generation is not None:
            found = replace(found, generation=_word("generation", generation, GENERATIONS))
        if layout is not None:
            found = replace(found, layout=_word("layout", layout, LAYOUTS))
        if wrap_ops is not None:
            try:
                read_list(str(wrap_ops))
            except ConfigError as error:
                raise ParameterError("wrap_ops", wrap_ops, error.allowed) from error
            found = replace(found, wrap_ops=str(wrap_ops))
        if leave_out is not None:
            if not isinstance(leave_out, (list, tuple)) or not all(isinstance(name, str) for name in leave_out):
                raise ParameterError("leave_out", leave_out, "a list of operators' names, like ['t', 'transpose']")
            found = replace(found, leave_out=tuple(leave_out))
        return found

    def wrap_list(self, *, more: bool) -> WrapList:
        """The calls that are nodes. more: with those of ptdbg that msprobe lacks, unless the program gives its own list"""
        tensor = ("__getitem__",) if more and self.wrap_ops is None else ()
        return read_list(self.wrap_ops).with_changes(without=self.leave_out, tensor=tensor)

    def namespaces(self, generation: str) -> tuple[str, ...]:
        """Namespaces of `torch.ops` whose operators are nodes. From 4.0 on ptdbg lists aten, called by programs in graph mode."""
        aten = self.layout == "ptdbg" and self.wrap_ops is None and generation != "2.3"
        return (*_NAMESPACES, "aten") if aten else _NAMESPACES


def from_environment() -> Settings:
    """Settings from environment variables. Raises ParameterError."""
    return Settings().with_changes(os.environ.get(GENERATION), os.environ.get(LAYOUT), None, None)


def _word(name: str, value: object, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise ParameterError(name, value, ", ".join(allowed))
    return str(value)
