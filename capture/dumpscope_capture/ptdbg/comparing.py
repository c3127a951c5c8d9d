"""`parse`, `compare` and `compare_distributed`: the server's, imported when they are called."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from dumpscope_capture.ptdbg.errors import Code, CompareException


def parse(pkl_file: str, module_name_prefix: str) -> None:
    """Print statistics and stacks of what begins with a prefix. Raises CompareException."""
    _call("parse", pkl_file, module_name_prefix)


def compare(
    input_param: Mapping[str, Any],
    output_path: str,
    stack_mode: bool | None = None,
    auto_analyze: bool = True,
    fuzzy_match: bool | str = False,
    suffix: str = "",
) -> Any:
    """Compare two dumps into a table in `output_path` and print the advice. stack_mode: None shows stacks where there are any;
    fuzzy_match: a text there is the suffix, as in 2.3.

    Raises CompareException.
    """
    return _call(
        "compare", input_param, output_path, stack_mode=stack_mode, auto_analyze=auto_analyze, fuzzy_match=fuzzy_match,
        suffix=suffix,
    )  # fmt: skip


def compare_distributed(npu_dir: str, bench_dir: str, output_path: str, **options: Any) -> Any:
    """Compare two folders of ranks, a table a rank. Raises CompareException."""
    return _call("compare_distributed", npu_dir, bench_dir, output_path, **options)


def _call(name: str, *args: Any, **options: Any) -> Any:
    try:
        server: Any = importlib.import_module("dumpscope.ptdbg")
    except ImportError as error:
        raise CompareException(
            Code.UNKNOWN,
            f"{name} needs the part of dumpscope that reads and compares dumps, which is not installed here: "
            f"pip install dumpscope ({error})",
        ) from error
    return getattr(server, name)(*args, **options)
