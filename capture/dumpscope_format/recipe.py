"""Settings that make the log of a run name the failing kernel: blocking launches, one process, a log file of its own."""

from __future__ import annotations

from typing import Final

BLOCKING: Final = {"cuda": "CUDA_LAUNCH_BLOCKING", "npu": "ASCEND_LAUNCH_BLOCKING"}
"""By device type: the variable with which every kernel is waited for."""

LOG_VARIABLE: Final = "ASCEND_PROCESS_LOG_PATH"
"""Where the runtime of an Ascend device writes the logs of a process."""

LOG_FOLDER: Final = "device_log"
RUN_FILE: Final = "recipe.json"
CRASH_FILE: Final = "crash.txt"
"""Python's stacks where the process dies of a signal."""
