"""Records what a PyTorch model computes, in dumps that msprobe and dumpscope read."""

from __future__ import annotations

from dumpscope_capture.config import ConfigError
from dumpscope_capture.debugger import PrecisionDebugger

__all__ = ["ConfigError", "PrecisionDebugger"]
