# ruff: noqa: F403, F405
"""Compares two dumps of one rank. Arguments: the two .pkl files, and where the table goes."""

import sys

from ptdbg_ascend import *

npu, bench, output = sys.argv[1:]
compare(
    {
        "npu_pkl_path": npu,
        "bench_pkl_path": bench,
        "npu_dump_data_dir": npu.removesuffix(".pkl"),
        "bench_dump_data_dir": bench.removesuffix(".pkl"),
        "is_print_compare_log": True,
    },
    output,
    stack_mode=False,
)
