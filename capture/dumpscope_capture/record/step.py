"""The step that is open: where its nodes go, which nodes are kept, and what is kept of each."""

from __future__ import annotations

from typing import Any

from dumpscope_capture.calls.selection import Selection
from dumpscope_capture.config import Config
from dumpscope_capture.context import HookErrors
from dumpscope_capture.record.checks import BenchCheck, OverflowCheck
from dumpscope_capture.values.recorder import Recorder
from dumpscope_capture.write.sink import Sink


class Step:
    """State of one step, reused for the next. `Recording` opens and closes it; backward passes and parameter gradients read it.

    sink, recorder: None between two steps, when nothing is recorded
    data: whether values are recorded, links: whether construct.json is written, with a line for each node
    """

    def __init__(self, config: Config, selection: Selection, errors: HookErrors) -> None:
        self.config = config
        self.selection = selection
        self.errors = errors
        self.sink: Sink | None = None
        self.recorder: Recorder | None = None
        self.links = config.extra_info and config.level != "L1"
        self.data = config.task != "structure"
        self.overflow: OverflowCheck | None = None
        self.bench: BenchCheck | None = None

    def record(self, value: Any, item: str, *, keyword: str | None = None) -> Any:
        """Record of a value; None between two steps. item, keyword: as `Recorder.record` takes them"""
        return None if self.recorder is None else self.recorder.record(value, item, keyword=keyword)
