"""Sessions of the engine for ptdbg programs, with ptdbg's names, files and folders."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, Final

import torch

from dumpscope_capture.calls.call import Call
from dumpscope_capture.calls.names import Api, WrapList
from dumpscope_capture.calls.selection import Selection
from dumpscope_capture.config import Config
from dumpscope_capture.context import LOG, Unobserved, call_stack, rank
from dumpscope_capture.device.kernels import KernelDump
from dumpscope_capture.older_torch import used_device
from dumpscope_capture.ptdbg.arguments import Place
from dumpscope_capture.ptdbg.files import FOLDER_MODE, PklSink, Plan
from dumpscope_capture.ptdbg.generations import Form, Spelling
from dumpscope_capture.ptdbg.lines import Line, LineRecorder
from dumpscope_capture.ptdbg.mode_selection import ModeSelection
from dumpscope_capture.record.recording import Recording
from dumpscope_capture.session import Session
from dumpscope_capture.write.folder_lock import is_free
from dumpscope_capture.write.sink import StepSink
from dumpscope_format.naming import api_name, item_name
from dumpscope_format.older_python import dataclass
from dumpscope_format.paths import rank_folder

_SCRIPT: Final = Path(__file__).with_name("compare_data.py")
_COMPARED: Final = frozenset(("all", "api_stack", "list", "range", "api_list"))
"""Modes for which `compare_data.py` is copied next to the dump."""
_HINTS = {
    "AsStrided": "views such as t and transpose make it; configure(leave_out=['t', 'transpose']) keeps them out of the dump",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where and how a session writes. steps: the program selected steps; flag: second field of lines"""

    place: Place
    form: Form
    mode: str
    filtered: bool
    flag: int = 0
    steps: bool = False
    rank: int | None = None


class PklRecording(Recording):
    """Names items as ptdbg does: a single result has no position, and keyword arguments follow the others.

    rerun_kernels: runs calls that overflow again inside the device's dump; counting: calls are numbered but not recorded
    """

    def __init__(self, config: Config, selection: Selection, errors: Any) -> None:
        super().__init__(config, selection, errors)
        self.extra_keys = False
        self.provenance = None
        self.rerun_kernels: KernelDump | None = None
        self.counting = False

    def begin_call(self, api: Api, args: tuple[Any, ...], kwargs: dict[str, Any], frame: FrameType | None) -> Call:
        if not self.counting:
            return super().begin_call(api, args, kwargs, frame)
        number = self.count(api.label, frame)
        return Call(api_name(api.prefix, api.name, number.shown, "forward"), "drop", None, number)

    def run(self, call: Call, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return function(*args, **kwargs) if self.counting else super().run(call, function, args, kwargs)

    def end_call(self, call: Call, result: Any) -> None:
        if not self.counting:
            super().end_call(call, result)

    def take_arguments(
        self,
        call: Call,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        frame: FrameType | None,
        module: torch.nn.Module | None = None,
    ) -> None:
        super().take_arguments(call, args, kwargs, frame, module)
        if self.config.extra_info and isinstance(self.sink, PklSink):
            self.sink.remember(call.name, call.stack or call_stack(frame))

    def record_arguments(self, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self.recorder is None:
            return
        head = item_name(call.name, "input", "")
        with Unobserved():
            call.body["input_args"] = [
                self.recorder.record_unobserved(value, f"{head}.{place}")
                for place, value in enumerate((*args, *kwargs.values()))
            ]

    def _keep_overflow(self, call: Call, result: Any) -> bool:
        held = call.held
        found = super()._keep_overflow(call, result)
        if (
            found
            and self.rerun_kernels is not None
            and held is not None
            and call.api is not None
            and self.sink is not None
        ):
            with self.errors.guard("a kernel dump"):
                self.rerun_kernels.rerun(call.name, self.sink.folder, call.api.function, held.args, held.kwargs)
        return found

    def record_output(self, result: Any, name: str) -> Any:
        return self.record(result, item_name(name, "output", ""))

    def fail_call(self, call: Call) -> None:
        super().fail_call(call)
        error = sys.exc_info()[1]
        hint = hint_of(error) if error is not None else None
        if hint is not None:
            LOG.warning("%s raised %s: %s", call.name, type(error).__name__, hint)
        if isinstance(self.sink, PklSink):
            self.sink.forget(line for some in call.body.values() for part in some for line in _lines(part))


def _lines(part: Any) -> list[Line]:
    return part if isinstance(part, list) else [part]


class PtdbgSession(Session):
    """A session that writes the msprobe layout, with the selection and the end of a ptdbg program.

    ending: makes the exception that ends the program when the overflow check has found enough, from a path
    """

    def __init__(
        self,
        config: Config,
        *,
        selection: Selection,
        wrap_list: WrapList | None = None,
        ending: Callable[[Path], BaseException] | None = None,
    ) -> None:
        self.ending = ending
        super().__init__(config, selection=selection, wrap_list=wrap_list)
        self._environment_checked = True  # when the hook was registered
        missing = self.table.missing
        if missing and missing not in _reported:
            _reported.add(missing)
            LOG.info(
                "%d listed calls are not in torch %s and cannot be recorded: %s", len(missing), torch.__version__,
                ", ".join(missing),
            )  # fmt: skip

    def on_write(self, path: Path) -> None:
        """A call is on disk. Raises the exception that ends the program, if it was the last requested one."""
        if self.ended and self.ending is not None:
            ending, self.ending = self.ending, None
            self.pause()
            raise ending(path)

    def _sink_kind(self) -> type[StepSink]:
        kind, session = super()._sink_kind(), self
        if self.ending is None:
            return kind

        class EndingSink(kind):  # type: ignore[misc,valid-type]
            def add(self, *args: Any, **kwargs: Any) -> None:
                super().add(*args, **kwargs)
                session.on_write(self.folder)

        return EndingSink


class PklSession(PtdbgSession):
    """A session that writes .pkl and .npy files."""

    def __init__(self, config: Config, target: Target, *, spelling: Spelling, **options: Any) -> None:
        self.target = target
        self.spelling = spelling
        self._files: tuple[str, ...] = ()
        self._found = 0
        super().__init__(config, **options)

    def _make_recording(self, selection: Selection) -> Recording:
        return PklRecording(self.config, selection, self.errors)

    def on_write(self, path: Path) -> None:
        if self.config.task == "overflow_check" and isinstance(self.sink, PklSink):
            LOG.warning("overflow %d of this process: stack and values are in %s", self.sink.found, path)
        super().on_write(path)

    def open(self, step: int, rank_id: int | None) -> None:
        if self.sink is not None and self.step == step:
            self._follow_rank(rank_id)
            return
        if self.sink is not None:
            self.end_step()
        target = self.target
        recorder = LineRecorder(
            spell=self.spelling.item,
            filtered=target.filtered,
            task="tensor" if self.config.task == "overflow_check" else self.config.task,
            summary=self.config.summary_mode,
        )
        plan = Plan(
            form=target.form, mode=target.mode, stem=target.form.stem(target.mode, Path(target.place.path).stem),
            flag=target.flag, stacks=self.config.extra_info, overflow=self.config.task == "overflow_check",
        )  # fmt: skip
        self.step = step
        self.sink = PklSink(
            plan, recorder=recorder, spelling=self.spelling, open_folder=self._open_folder, on_write=self.on_write,
            found=self._found,
        )  # fmt: skip
        self.recording.open(self.sink, recorder)

    def resume(self) -> None:
        self._count_only(counting=False)
        super().resume()
        if isinstance(self.sink, PklSink):
            self.sink.active = True

    def count(self) -> None:
        """Number calls without recording them, between OFF and ON: numbers count all calls since the hook was registered."""
        self._count_only(counting=True)
        super().resume()

    def _count_only(self, *, counting: bool) -> None:
        recording = self.recording
        assert isinstance(recording, PklRecording)
        assert isinstance(recording.selection, ModeSelection)
        recording.counting = recording.selection.idle = counting

    def start_over(self) -> None:
        """The switch is ON again: from 4.0 on, new calls replace what the last ON wrote; in 2.3 they are appended."""
        if isinstance(self.sink, PklSink) and not self.target.form.one_file:
            self.sink.start_over()

    def continue_from(self, other: PtdbgSession) -> None:
        """Continue the overflow numbers of another session."""
        if isinstance(other, PklSession):
            self._found = other._found

    def pause(self) -> None:
        super().pause()
        if isinstance(self.sink, PklSink):
            self.recording.passes.settle()
            self.collectives.settle()
            self.sink.active = False

    def flush(self) -> None:
        self._follow_rank(None)
        super().flush()

    def leave_script(self) -> None:
        """With torch_npu, from 4.0 on: copy `compare_data.py` next to the .pkl file, unless it exists."""
        sink, target = self.sink, self.target
        if "torch_npu" not in sys.modules or not isinstance(sink, PklSink) or not sink.opened:
            return
        path = sink.folder / _SCRIPT.name
        if (
            target.form.one_file
            or target.mode not in _COMPARED
            or self.config.task == "overflow_check"
            or path.exists()
        ):
            return
        with self.errors.guard("compare_data.py"):
            shutil.copyfile(_SCRIPT, path)

    def narrow(self, module: torch.nn.Module, name: str) -> None:
        self.spelling.dumped[f"Module.{name}.{type(module).__name__}"] = name
        super().narrow(module, name)

    def end_step(self) -> None:
        sink, self.sink = self.sink, None
        self.collectives.settle()
        self.recording.close()
        if sink is not None:
            for what, number in self.errors.counts.items():
                sink.count(f"hook_error {what}", number)
            self.errors.counts.clear()
            sink.close()
            self._found = sink.found if isinstance(sink, PklSink) else 0
            self._folder_lock.release()

    # -- folders -------------------------------------------------------------------------------------------------------

    def folder(self, step: int) -> Path:
        number = self.rank
        return self._rank_path(step, rank_folder(0 if number is None else number, 0))

    def _rank_path(self, step: int, rank: str) -> Path:
        place, form = self.target.place, self.target.form
        root = Path(place.path).parent if form.one_file else Path(place.path)
        return root.joinpath(*form.folders(place.tag, step=step, steps=self.target.steps, rank=rank))

    def _open_folder(self, files: tuple[str, ...]) -> Path:
        """Make and lock the folder of this rank; move files of an earlier run that would be overwritten."""
        self.rank = self._rank_now()
        folder = self.folder(self.step)
        os.makedirs(folder.parent, FOLDER_MODE, exist_ok=True)
        folder.mkdir(FOLDER_MODE, exist_ok=True)
        if not self._folder_lock.take(folder):
            LOG.warning(
                "another process writes into %s, and neither torch.distributed nor RANK gives the rank of this process: it uses "
                "proc%d until that is known", folder, os.getpid(),
            )  # fmt: skip
            folder = self._rank_path(self.step, rank_folder(None, os.getpid()))
            folder.mkdir(FOLDER_MODE, exist_ok=True)
            self._folder_lock.take(folder)
        self._files = files
        self._keep_files(folder, files)
        LOG.info("data of step %d goes to %s", self.step, folder)
        return folder

    def _rank_now(self) -> int | None:
        if self.target.rank is not None:
            return self.target.rank
        known = rank()
        return known if known is not None else used_device()

    def _follow_rank(self, rank_id: int | None) -> None:
        sink = self.sink
        if not isinstance(sink, PklSink) or not sink.opened:
            return
        now = self._rank_now()
        wanted = self._rank_path(self.step, rank_folder(now, 0)) if now is not None else sink.folder
        if wanted == sink.folder:
            return
        if wanted.exists() or not is_free(wanted):
            LOG.warning("%s is there already: this process stays in %s", wanted, sink.folder)
            return
        with self.errors.guard("the rank's folder"):
            sink.move(wanted)
            self.rank = now
            key = (wanted.absolute(), *self._files)
            _file_steps[key] = self.step

    def _keep_files(self, folder: Path, files: tuple[str, ...]) -> None:
        """Move files that would be overwritten to `earlier-{time}` next to the tag's folder. files: their names, empty for all.

        If steps have no own folders, the files of this run's last step are removed for the next step.
        """
        used = (folder.absolute(), *files)
        there = [folder / name for name in files or sorted(os.listdir(folder)) if (folder / name).exists()]
        last = _file_steps.get(used)
        _file_steps[used] = self.step
        if last is not None and last != self.step and files:
            for path in there:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            LOG.info(
                "step %d replaces step %d in %s; with step=[...] each step has its own folder", self.step, last, folder
            )
        if last is not None or not there:
            return
        place, form = self.target.place, self.target.form
        root = Path(place.path).parent if form.one_file else Path(place.path)
        kept = root / f"earlier-{time.strftime('%Y%m%d-%H%M%S')}"
        number = 0
        while kept.exists():
            number += 1
            kept = kept.with_name(f"{kept.name}-{number}")
        below = kept / folder.relative_to(root)
        os.makedirs(below, FOLDER_MODE, exist_ok=True)
        for path in there:
            path.rename(below / path.name)
        LOG.warning("%s held %s of an earlier run, now in %s", folder, ", ".join(path.name for path in there), below)


_reported: set[tuple[str, ...]] = set()
"""Missing calls that were logged."""

_file_steps: dict[tuple[Any, ...], int] = {}
"""Files that this process wrote, with their step. It may add to them."""


def hint_of(error: BaseException) -> str | None:
    """Advice for an error of an operator that the capture may cause."""
    return next((hint for word, hint in _HINTS.items() if word in str(error)), None)
