"""Starts the recorder for the steps after an anomaly.

    step 40..59   the numbers wait on the device
    step 59 ends  they come to the host; step 47 has a spike
    step 60       is dumped, and as many after it as are asked for

Ranks send no message: a rank that finds an anomaly leaves a mark in the folder of the monitor, with the step that it will dump.
That is one round of waiting steps later than in a run of one process, so that all ranks have looked for marks before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import torch

from dumpscope_capture.config import ConfigError
from dumpscope_capture.context import LOG, HookErrors
from dumpscope_capture.debugger import PrecisionDebugger
from dumpscope_capture.monitor.rules import Finding, Rules, Step, describe
from dumpscope_capture.monitor.settings import DumpSettings
from dumpscope_capture.record.marks import Marks

MARK: Final = "dump-"
"""Beginning of the name of a mark: `dump-rank3.json`."""


class DumpStarter:
    """Judges steps and drives the recorder.

    folder: of the monitor; name: of this process, `rank3`; rank: None for a job of one process
    ahead: steps between two looks, from which ranks agree on a step
    Raises ConfigError for a recorder that cannot wait for an anomaly.
    """

    def __init__(
        self,
        settings: DumpSettings,
        models: Sequence[torch.nn.Module],
        folder: Path,
        name: str,
        *,
        rank: int | None,
        ahead: int,
        errors: HookErrors,
    ) -> None:
        self._settings = settings
        self._models = list(models)
        self._rank = rank
        self._ahead = 0 if rank is None else ahead
        self._errors = errors
        self._rules = Rules(settings.on)
        self._marks = Marks(folder, MARK, name)
        self._times = settings.times
        self._first: int | None = None
        self._reasons: list[str] = []
        self._runs = self._driven = self._over = False
        self._own = settings.recorder is None
        self._recorder = _recorder(settings)
        self._recorder.hold()
        with errors.guard("a dump after an anomaly"):
            self._marks.forget_earlier()

    def judge(self, steps: Sequence[Step]) -> None:
        """Look at steps that have come to the host, and at the marks of other ranks."""
        if self._over:
            return
        with self._errors.guard("a dump after an anomaly"):
            found: list[Finding] = []
            at = steps[-1].step
            for step in steps:
                own = self._rules.judge(step)
                if own and not found:
                    found, at = own, step.step
            if self._rank is not None:
                self._follow(steps[-1].step)
            if found and self._first is None and self._may_begin():
                self._plan(at, steps[-1].step + 1 + self._ahead, describe(found, at))

    def end_step(self) -> None:
        """End a step of the monitor's own recorder."""
        self._driven = True
        if not self._runs:
            return
        self._runs = False
        with self._errors.guard("a dump after an anomaly"):
            self._recorder.stop()
            self._recorder.step()

    def close(self) -> None:
        """End what runs; nothing begins any more."""
        self._over = True
        self.end_step()

    def begin_step(self, step: int) -> None:
        """A step of this number comes: record it if it is its turn."""
        with self._errors.guard("a dump after an anomaly"):
            if self._first is not None and step >= self._first:
                self._first = None
                self._times -= 1
                self._recorder.release(self._settings.steps, self._reasons)
                if self._own:
                    self._recorder.set_init_step(step)
            if self._own and not self._recorder.waits:
                self._recorder.start(self._models[0] if len(self._models) == 1 else self._models, rank_id=self._rank)
                self._runs = True

    def _may_begin(self) -> bool:
        return self._times > 0 and self._recorder.waits

    def _plan(self, at: int, first: int, reasons: Sequence[str]) -> None:
        if not self._driven:
            self._times = 0
            LOG.warning("monitor: %s; no step is dumped, as the script does not call step()", "; ".join(reasons))
            return
        self._first, self._reasons = first, list(reasons)
        last = first + self._settings.steps - 1
        shown = f"step {first} is" if last == first else f"steps {first} to {last} are"
        LOG.warning("monitor: %s; %s dumped to %s", "; ".join(reasons), shown, self._recorder.config.dump_path)
        if self._rank is not None:
            self._marks.leave({"step": at, "first": first, "reasons": self._reasons})

    def _follow(self, last: int) -> None:
        """Take over the step that another rank will dump. last: the step that has just ended"""
        for mark in self._marks.of_others():
            first, reasons = mark.get("first"), mark.get("reasons")
            if not isinstance(first, int) or not isinstance(reasons, list) or first <= last or not self._may_begin():
                continue
            if self._first is None or first < self._first:
                self._first, self._reasons = first, [f"on {mark.get('process')}", *map(str, reasons)]
                LOG.warning("monitor: %s; dumped from step %d on, as there", "; ".join(self._reasons), first)


def _recorder(settings: DumpSettings) -> PrecisionDebugger:
    """The recorder that waits. Raises ConfigError where it cannot."""
    recorder = settings.recorder
    if recorder is None:
        made = PrecisionDebugger.all()
        recorder = PrecisionDebugger(**settings.arguments)
        if any(recorder is one for one in made) and not recorder.waits:  # one that waits is an earlier monitor's
            raise ConfigError(
                "dump", dict(settings.arguments), "dump=debugger, as the script has made this PrecisionDebugger itself"
            )
    if not isinstance(recorder, PrecisionDebugger):
        raise ConfigError(
            "dump", type(recorder).__name__, "a PrecisionDebugger, a path, or an object with its arguments"
        )
    config: Any = recorder.config
    if config.trigger is not None or config.level == "debug" or config.task == "acc_check":
        raise ConfigError("dump", config.source, "a recorder without trigger, level debug and task acc_check")
    if settings.recorder is None and config.step:
        raise ConfigError("dump", list(config.step), "a recorder without the key step: the monitor says which ones")
    return recorder
