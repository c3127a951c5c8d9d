"""ptdbg_ascend's interface on this engine: in an old script only the import line changes.

    from dumpscope_capture.ptdbg import *

As in ptdbg_ascend, the import seeds all random generators with 1234.
"""

from __future__ import annotations

from dumpscope_capture.ptdbg.calls import (
    acc_cmp_dump,
    compare,
    compare_distributed,
    configure,
    module_dump,
    module_dump_end,
    overflow_check,
    parse,
    register_hook,
    seed_all,
    set_backward_input,
    set_dump_path,
    set_dump_switch,
    set_overflow_check_switch,
)
from dumpscope_capture.ptdbg.debugger import PrecisionDebugger
from dumpscope_capture.ptdbg.errors import (
    CaptureEnd,
    CompareException,
    DumpException,
    OverflowEnd,
    ParameterError,
    StepsEnd,
)

__all__ = [
    "CaptureEnd", "CompareException", "DumpException", "OverflowEnd", "ParameterError", "PrecisionDebugger", "StepsEnd",
    "acc_cmp_dump", "compare", "compare_distributed", "configure", "module_dump", "module_dump_end", "overflow_check", "parse",
    "register_hook", "seed_all", "set_backward_input", "set_dump_path", "set_dump_switch", "set_overflow_check_switch",
]  # fmt: skip

seed_all()
