"""Settings of a run that names the right kernel on an error: synchronous launches, one process, its own log."""

from __future__ import annotations

from typing import Final

BLOCKING: Final = {"cuda": "CUDA_LAUNCH_BLOCKING", "npu": "ASCEND_LAUNCH_BLOCKING"}
"""Variable by device type that makes every launch wait for its kernel."""

LOG_VARIABLE: Final = "ASCEND_PROCESS_LOG_PATH"
"""Variable with the folder for the logs of an Ascend runtime."""

LOG_FOLDER: Final = "device_log"
RUN_FILE: Final = "recipe.json"
CRASH_FILE: Final = "crash.txt"
"""File with Python's stacks if a signal kills the process."""
