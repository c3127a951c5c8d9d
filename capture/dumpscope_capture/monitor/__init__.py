"""Watches a training: statistics of every step in a file that grows (docs/monitor.md).

recorder     what a script uses
gradients    when gradients are read: before they are reduced, before they are clipped, as the optimizer gets them
activations  values that modules return, and their gradients
ring         numbers of the last steps on their devices, and the file
statistics   statistics of many tensors in few operations
rules        anomalies that are seen while the training runs
dumping      starts a dump of the steps after one
settings     what is watched, also from a configuration of msprobe's monitor
"""

from __future__ import annotations

from dumpscope_capture.monitor.recorder import Monitor
from dumpscope_capture.monitor.settings import DumpSettings, MonitorSettings, read_msprobe

__all__ = ["DumpSettings", "Monitor", "MonitorSettings", "read_msprobe"]
