"""The calls and the prompt of ptdbg_ascend, for scripts and people that know them.

`compare`, `compare_distributed` and `parse` are here as they are in ptdbg_ascend; they are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dumpscope.ptdbg.calls import Code, Compared, CompareException, compare, compare_distributed, parse

__all__ = ["Code", "CompareException", "Compared", "compare", "compare_distributed", "parse"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from dumpscope.ptdbg import calls  # noqa: PLC0415  # the prompt needs no comparison

    return getattr(calls, name)
