"""ptdbg's PrecisionDebugger: the same capture, with one folder per step."""

from __future__ import annotations

import os
from typing import Any

import torch
from torch.utils.data import dataloader

from dumpscope_capture.context import LOG, rank
from dumpscope_capture.debugger import ClassOrInstance
from dumpscope_capture.ptdbg import acl
from dumpscope_capture.ptdbg.arguments import (
    Hook,
    Switch,
    check_count,
    check_flag,
    check_number,
    check_place,
    check_root,
    check_steps,
    check_summary,
    check_switch,
)
from dumpscope_capture.ptdbg.core import Capture, current_capture
from dumpscope_capture.ptdbg.errors import Code, CompareException, ParameterError, StepsEnd

_KINDS = {"dump": "dump", "overflow_check": "overflow"}
_DUMP_OPTIONS = frozenset((
    "mode", "scope", "api_list", "filter_switch", "input_output_mode", "acl_config", "backward_input", "summary_only",
    "summary_mode",
))  # fmt: skip
_OVERFLOW_OPTIONS = frozenset(("mode", "acl_config", "overflow_nums", "filter_switch", "need_replicate"))


class PrecisionDebugger:
    """Dumps, or checks for overflows, between start and stop of each step.

        debugger = PrecisionDebugger(dump_path="./dump", hook_name="dump", step=[0, 2])
        for batch in data:
            debugger.start()
            loss = train(batch)
            debugger.stop()
            debugger.step()

    hook_name: "dump" or "overflow_check"; rank: the only one that records; step: those to record, after the last of which `start`
    ends the program (StepsEnd, exit status 0)
    enable_dataloader: each batch of a DataLoader is a step; the loader calls start, stop and step
    model: record its modules instead of functions
    There is one instance per process; later arguments are ignored. Raises CompareException.
    """

    _instance: PrecisionDebugger | None = None

    def __new__(cls, *args: Any, **kwargs: Any) -> PrecisionDebugger:
        if PrecisionDebugger._instance is not None and PrecisionDebugger._instance._capture is not current_capture():
            PrecisionDebugger._instance = None
        if PrecisionDebugger._instance is None:
            return super().__new__(cls)
        return PrecisionDebugger._instance

    def __init__(
        self,
        dump_path: str | os.PathLike[str] | None = None,
        hook_name: str | None = None,
        rank: int | None = None,
        step: list[int] | None = None,
        enable_dataloader: bool = False,
        model: torch.nn.Module | None = None,
    ) -> None:
        if PrecisionDebugger._instance is self:
            return
        if hook_name not in _KINDS:
            raise ParameterError("hook_name", hook_name, ", ".join(_KINDS))
        if model is not None and not isinstance(model, torch.nn.Module):
            raise ParameterError("model", type(model).__name__, "an nn.Module")
        if model is not None and hook_name == "overflow_check":
            raise ParameterError("model", type(model).__name__, "nothing with hook_name overflow_check")
        self._rank = check_number("rank", rank)
        self._by_loader = check_flag("enable_dataloader", enable_dataloader)
        self._capture: Capture = current_capture()
        place = check_place(dump_path, "ptdbg_dump")
        self._capture.place = check_root(place, self._capture.settings.generation)
        self._capture.steps = check_steps(step)
        self._capture.model = model
        self._hook = Hook(kind=_KINDS[str(hook_name)])
        self._switch = Switch(mode="api_stack")
        PrecisionDebugger._instance = self
        if self._by_loader:
            _step_by_loaders()

    @classmethod
    def the_one(cls) -> PrecisionDebugger:
        instance = PrecisionDebugger._instance
        if instance is None or instance._capture is not current_capture():
            raise CompareException(Code.INVALID_PARAM, "PrecisionDebugger was not made yet")
        return instance

    @ClassOrInstance
    def configure_hook(self, mode: str | None = None, **options: Any) -> None:
        """Choose what is recorded: for dump as in `set_dump_switch` (mode "api_stack" by default), for overflow_check
        mode "api" or "acl". Raises CompareException with code 11."""
        dumping = self._hook.kind == "dump"
        known = _DUMP_OPTIONS if dumping else _OVERFLOW_OPTIONS
        for key in options:
            if key not in known:
                raise ParameterError("configure_hook", key, ", ".join(sorted(known)))
        if dumping:
            self._configure_dump("api_stack" if mode is None else mode, options)
        else:
            self._configure_overflow("api" if mode is None else mode, options)

    def _configure_dump(self, mode: str, options: dict[str, Any]) -> None:
        summary = check_summary(options.get("summary_mode"), options.get("summary_only", False))
        self._switch = check_switch(
            mode, options.get("scope"), options.get("api_list"), options.get("filter_switch"),
            options.get("input_output_mode"), summary,
        )  # fmt: skip
        if mode != "acl":
            return
        if self._capture.model is not None:
            raise CompareException(
                Code.DUMP_MODE, "mode acl dumps one function's kernels; it cannot be used with model="
            )
        config = options.get("acl_config")
        if not isinstance(config, (str, os.PathLike)):
            raise ParameterError("acl_config", config, "the path of a dump.json, with mode acl")
        self._hook = Hook(kind="dump", dump_mode="acl", dump_config=str(os.fspath(config)))
        gradients = options.get("backward_input")
        if gradients:
            self._capture.backward_input = tuple(str(path) for path in gradients)
        self._capture.register(self._hook, self._capture.model)

    def _configure_overflow(self, mode: str, options: dict[str, Any]) -> None:
        if mode not in ("api", "acl"):
            raise ParameterError("mode", mode, "api or acl")
        if mode == "acl":
            acl.check(options.get("acl_config"))
        filtered = options.get("filter_switch")
        self._switch = check_switch("all", None, None, filtered, None, "all")
        self._hook = Hook(
            kind="overflow",
            dump_mode=mode,
            dump_config=options.get("acl_config"),
            overflow_nums=check_count("overflow_nums", options.get("overflow_nums", 1)),
            need_replicate=check_flag("need_replicate", options.get("need_replicate", False)),
        )

    # -- steps ---------------------------------------------------------------------------------------------------------

    @ClassOrInstance
    def start(self) -> None:
        """Start recording, if this is a selected step. Raises StepsEnd after the last selected step."""
        if not self._is_by_loader("start"):
            self._start()

    @ClassOrInstance
    def stop(self) -> None:
        """Stop recording; all data is on disk then."""
        if not self._is_by_loader("stop"):
            self._stop()

    @ClassOrInstance
    def step(self) -> None:
        """End the training step."""
        if not self._is_by_loader("step"):
            self._capture.end_step()
            if self._capture.on and not self._is_wanted():
                self._stop()

    def _is_by_loader(self, name: str) -> bool:
        if self._by_loader:
            LOG.warning("%s() does nothing: with enable_dataloader=True the loader does it", name)
        return self._by_loader

    def _start(self) -> None:
        capture = self._capture
        last = capture.steps[-1] if capture.steps else None
        if last is not None and capture.step > last:
            self._stop()
            capture.close()
            message = f"step {last}, the last one asked for, is recorded"
            LOG.info("%s. Training ends here.", message)
            raise StepsEnd(message)
        if not self._is_wanted():
            return
        capture.switch, capture.on = self._switch, True
        capture.register(self._hook, capture.model)

    def _is_wanted(self) -> bool:
        """Whether this process records this step."""
        steps = self._capture.steps
        return (not steps or self._capture.step in steps) and self._rank in (None, rank() or 0)

    def _stop(self) -> None:
        if self._capture.hook is not None:
            self._capture.turn_off()

    def _next(self, fetch: Any) -> Any:
        """The next batch of a loader; each batch is one step."""
        capture = self._capture
        if capture.hook is not None or self._fetched:
            self._stop()
        batch = fetch()
        if self._fetched:
            capture.end_step()
        self._fetched = True
        self._start()
        return batch

    _fetched = False


def _step_by_loaders() -> None:
    """Make every DataLoader call start, stop and step of the debugger."""
    kind = dataloader._BaseDataLoaderIter
    given = kind.__next__
    if getattr(given, "steps", False):
        return

    def stepping(loader: Any) -> Any:
        debugger = PrecisionDebugger._instance
        if debugger is None or not debugger._by_loader or debugger._capture is not current_capture():
            return given(loader)
        return debugger._next(lambda: given(loader))

    stepping.steps = True  # type: ignore[attr-defined]
    kind.__next__ = stepping  # type: ignore[assignment,method-assign]
