"""A capture from its first start to its end: its steps and folders, and the hooks installed while it runs."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, cast

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from dumpscope_capture.calls import observers
from dumpscope_capture.calls.call import OPTIMIZER, OptimizerStep, code_of
from dumpscope_capture.calls.names import Table, WrapList, every_call, optional, read_list
from dumpscope_capture.calls.registry import moving
from dumpscope_capture.calls.selection import Selection
from dumpscope_capture.config import Config
from dumpscope_capture.context import LOG, HookErrors, Unobserved, rank, source_text
from dumpscope_capture.device import environment_checks, kernels
from dumpscope_capture.device.environment import FRAMEWORK, describe_run
from dumpscope_capture.hooks import functions
from dumpscope_capture.hooks.aten import AtenMode
from dumpscope_capture.hooks.collectives import Collectives
from dumpscope_capture.hooks.compiled import EagerMode
from dumpscope_capture.hooks.entering import Entering
from dumpscope_capture.hooks.functions import FunctionMode
from dumpscope_capture.hooks.megatron import MicroSteps, micro_sink
from dumpscope_capture.hooks.modules import ModuleScopes
from dumpscope_capture.hooks.regions import CompiledRegions
from dumpscope_capture.hooks.triton import TritonLaunches
from dumpscope_capture.proof.backward_failures import Explainer, How
from dumpscope_capture.proof.call_counter import CALL_COUNTER
from dumpscope_capture.proof.call_saving import CallSaver
from dumpscope_capture.record.checks import BenchCheck, OverflowCheck
from dumpscope_capture.record.recording import Recording
from dumpscope_capture.values.amounts import CountingSink, FrozenParameters, SizeCounter
from dumpscope_capture.values.dedup import Dedup
from dumpscope_capture.values.recorder import Recorder
from dumpscope_capture.values.slices import Slices
from dumpscope_capture.write.folder_lock import FolderLock, is_free
from dumpscope_capture.write.sink import Sink, StepSink
from dumpscope_capture.write.source_files import SourceFiles, are_wanted
from dumpscope_capture.write.tensor_files import StepFiles
from dumpscope_format.paths import CONSTRUCT_JSON, DEBUG_JSON, DUMP_JSON, STACK_JSON, rank_folder, step_folder
from dumpscope_format.run import (
    BETWEEN_REGIONS,
    COMPILED_NOTE,
    COMPILED_REGIONS,
    FROZEN,
    GRADIENTS_NOTE,
    NOTES,
    SLICED_NOTE,
    UNRECORDED,
)
from dumpscope_format.schema import MICRO_STEP_KEY

GIB: Final = 1 << 30


class Session:
    """Records with one configuration.

    selection: which nodes are recorded, None to take it from the configuration
    wrap_list: calls that are nodes, None for the list that the configuration names
    """

    def __init__(
        self, config: Config, *, selection: Selection | None = None, wrap_list: WrapList | None = None
    ) -> None:
        wrap_list = wrap_list or _wrap_list(config)
        self.config = config
        self.errors = HookErrors()
        if selection is None:
            as_msprobe = wrap_list.msprobes_low_risk if config.numbering == "msprobe" else frozenset()
            selection = Selection(config, low_risk=wrap_list.low_risk | as_msprobe, core=wrap_list.core)
        self.recording = self._make_recording(selection)
        self._wrap_list = wrap_list
        self._optional = optional()
        self.table = Table(wrap_list, namespaces=config.custom_op_namespaces)
        self.scopes = ModuleScopes(self.recording)
        self.recording.around = self.scopes.note_compiled
        self.collectives = Collectives(wrap_list, self.recording)
        self.triton = TritonLaunches(self.recording)
        self.micro = MicroSteps()
        self.eager = EagerMode()
        self._runs_eagerly = False
        self.entering = Entering(lift=self._lift, lay=self._lay)
        self.regions = CompiledRegions(
            self.recording, self.entering, label_of=self.scopes.label_of, install_late=self._begin_compiled
        )
        self.mode: FunctionMode | None = None
        self._mode_held = 0
        self.aten: AtenMode | None = None
        self.kernels = self.recording.kernels = _kernels(config, self.errors)
        self.saver = CallSaver(config.save_calls, lambda: self.sink.folder if self.sink is not None else None)
        self.explainer = Explainer(cast(How, config.explain_backward)) if config.explain_backward != "off" else None
        self.recording.observers += [self.saver] if self.explainer is None else [self.saver, self.explainer]
        self.ended = False
        self._spent = 0
        self._frozen = None if config.frozen else FrozenParameters()
        self.slices = Slices(config.slice)
        self._told_size = False
        self._step_bytes: int | None = None
        self._told_of_nothing = False
        self.installed = False
        self._environment_checked = False
        self._check = self._make_check()
        self.thread = 0
        self.models: Sequence[torch.nn.Module] = ()
        self.sink: Sink | None = None
        self.step = -1
        self.rank: int | None = None
        self._used: set[Path] = set()
        self._dedup: Dedup | None = None
        self._earlier_files: StepFiles | None = None
        self._sources = SourceFiles(source_text) if config.source_files and are_wanted() else None
        self._folder_lock = FolderLock()
        self._handles: list[Any] = []

    # -- on and off ----------------------------------------------------------------------------------------------------

    def start(self, models: Sequence[torch.nn.Module], *, numbered: bool, step: int, rank_id: int | None) -> None:
        """Begin or continue to record a step."""
        if not self._environment_checked:
            self._environment_checked = True
            environment_checks.log_warnings()
        self.open(step, rank_id)
        self._watch_models(models, numbered=numbered)
        self._tell_size()
        self.resume()

    def _watch_models(self, models: Sequence[torch.nn.Module], *, numbered: bool) -> None:
        self.scopes.compiled = self._stays_compiled
        if self.config.modules:
            self.scopes.watch(models, numbered=numbered)
        self.regions.watch(models, numbered=numbered)
        self.models = models

    def resume(self) -> None:
        """Install the hooks for calls and modules, in the calling thread."""
        if self.installed or self.ended:
            return
        for one in self.slices.now:
            self.recording.notes.add(SLICED_NOTE, str(one))
        if self.config.modules or self.config.functions or not self.scopes.empty:
            self.scopes.install()
        if self.config.level == "L2" and self.kernels is None:
            self.aten = AtenMode(self.recording)
            self.recording.aten = True
            self.aten.enter()
            self.thread = threading.get_ident()
        recorded = self.config.functions or self.kernels is not None
        counted = bool(self.saver.names) or self.explainer is not None
        if recorded or (counted and self.config.level == "L0"):
            if optional() != self._optional:  # a library was imported since
                self._optional = optional()
                self.table = Table(self._wrap_list, namespaces=self.config.custom_op_namespaces)
            CALL_COUNTER.step_aside()
            self.mode = FunctionMode(self.table, self.recording)
            self._mode_held = functions.count_holders(self.mode)
            functions.enter(self.mode)
            self.thread = threading.get_ident()
            self.scopes.adopt = self._adopt
        if recorded:
            self.collectives.install()
            self.triton.install()
        if self.recording.links:
            self.micro.install()
        self._watch_optimizers()
        if self.explainer is not None:
            self.explainer.install()
        self._begin_compiled()
        self.installed = self.recording.active = True

    def pause(self) -> None:
        """Remove all hooks. Gradients of recorded calls are still taken until the step ends."""
        if not self.installed:
            return
        self.installed = self.recording.active = False
        if self._runs_eagerly:
            self.eager.end()
        self.regions.end()
        if self.explainer is not None:
            self.explainer.remove()
        self._unwatch_optimizers()
        self.collectives.remove()
        self.triton.remove()
        self.micro.remove()
        self.scopes.remove()
        left = self.aten is None or self.aten.leave()
        left = (self.mode is None or functions.leave(self.mode)) and left
        if not left and threading.get_ident() != self.thread:
            LOG.warning("stop() was called in another thread than start(): an idle function mode stays in that thread")
        if self.mode is not None:
            functions.wait_until_dropped(self.mode, self._mode_held)
            CALL_COUNTER.take_over()
        self.aten = self.mode = None
        self.scopes.adopt = None
        with self.errors.guard("a module's results"):
            self.recording.close_left(sys._getframe())
        self.recording.thread_state.clear()

    # -- compiled code -------------------------------------------------------------------------------------------------

    @property
    def _stays_compiled(self) -> bool:
        """Whether compiled code runs compiled. Not where something asks for calls inside it: level L2 for its operators."""
        operators = self.config.level == "L2" and self.kernels is None
        inside = operators or self.explainer is not None or observers.OBSERVERS or observers.RUNNERS
        return self.config.compiled == "graph" and not inside

    def _begin_compiled(self) -> None:
        self._runs_eagerly = not self._stays_compiled
        if self._runs_eagerly:
            self.eager.begin(self.models)
        else:
            self.regions.begin()

    def _lift(self) -> None:
        """Compiled code is entered: take away what it could see."""
        self.scopes.lift()
        self.collectives.lift()
        self.triton.lift()
        self.micro.lift()
        self._unwatch_optimizers()

    def _lay(self) -> None:
        """End of `_lift`."""
        self.scopes.lay()
        self.collectives.lay()
        self.triton.lay()
        self.micro.lay()
        self._watch_optimizers()

    def silence(self) -> None:
        """In a forked child: record nothing and do not touch the parent's files."""
        self.recording.active = False
        self.recording.sink = self.sink = None
        self._folder_lock.forget()

    def _adopt(self) -> Callable[[], Any] | None:
        """Record the calling thread too. Returns a function that ends this; None if the thread is recorded already."""
        if threading.get_ident() == self.thread or any(
            isinstance(mode, FunctionMode) for mode in functions.mode_stack()
        ):
            return None
        mode = FunctionMode(self.table, self.recording)
        functions.enter(mode)
        return lambda: functions.leave(mode)

    def narrow(self, module: torch.nn.Module, name: str) -> None:
        """Record one module and nothing else."""
        if self.scopes.knows(module):
            LOG.info("%s is recorded already: module_dump changes nothing", name)
            return
        self.scopes.narrow(module, f"Module.{name}.{type(module).__name__}")
        self.recording.functions_off = True
        if self.recording.active:
            self.scopes.install()

    def widen(self) -> None:
        self.scopes.widen()
        self.recording.functions_off = False
        if self.scopes.empty:
            self.scopes.remove()

    # -- files ---------------------------------------------------------------------------------------------------------

    def open(self, step: int, rank_id: int | None) -> None:
        """Open the files of a step, or rename them when the rank has become known."""
        if self.sink is not None and self.step == step:
            self._follow_rank(rank_id)
            return
        self.end_step()
        self.rank = rank_id if rank_id is not None else rank()
        folder = self.folder(step)
        if is_free(folder):
            self._keep_old(folder)
        if not self._folder_lock.take(folder):
            LOG.warning("another process writes into %s: this process uses a folder named by its process id", folder)
            folder = folder.with_name(rank_folder(None, os.getpid()))
            self._keep_old(folder)
            self._folder_lock.take(folder)
        recorder = Recorder(
            task="tensor" if self.config.task == "overflow_check" else self.config.task,
            summary=self.config.summary_mode,
            precision=self.config.precision,
            wants_tensor=self._file_filter(),
            dedup=self._dedup,
            frozen=self._frozen,
            slices=self.slices,
        )
        self._dedup = recorder.dedup
        self.sink = self._sink_kind()(
            folder,
            {"task": self.config.task, "level": self.config.level, "framework": FRAMEWORK},
            recorder=recorder,
            async_dump=self.config.async_dump,
            extra_info=self.config.extra_info,
            run=describe_run(self.config, self.rank, step),
            earlier=self._earlier_files,
            sources=self._sources,
        )
        self.step = self.saver.step = step
        if isinstance(self._check, BenchCheck):
            self._check.open(step, folder.name)
        if self.kernels is not None:
            self.kernels.reset()
        self.recording.open(self.sink, recorder)
        LOG.info("data of step %d goes to %s", step, folder)

    def folder(self, step: int) -> Path:
        return Path(self.config.dump_path, step_folder(step), rank_folder(self.rank, os.getpid()))

    def flush(self) -> None:
        if self.sink is not None:
            self._write_micro_steps(self.sink)
            self.sink.flush()

    def _make_recording(self, selection: Selection) -> Recording:
        return Recording(self.config, selection, self.errors)

    def _sink_kind(self) -> type[StepSink]:
        return micro_sink(self.micro) if self.recording.links and self.micro.found else StepSink

    def _write_micro_steps(self, sink: Sink) -> None:
        number = self.micro.last
        if number is not None and isinstance(sink, StepSink):
            StepSink.parent(sink, MICRO_STEP_KEY, number)

    def end_step(self) -> None:
        """Close the files of the step."""
        self.models = ()  # the program may drop them before the next step
        sink, self.sink = self.sink, None
        self.collectives.settle()
        if sink is not None and self.recording.provenance is not None:
            sink.add_to_run("arguments", self.recording.provenance.argument_names())
        unlisted = {**self.table.take_unlisted(), **self.recording.take_left_out()}
        if sink is not None and unlisted and self.config.functions:
            sink.add_to_run(UNRECORDED, unlisted)
        if sink is not None and self.scopes.scripted:
            sink.add_to_run("skipped_modules", list(self.scopes.scripted))
        if sink is not None:
            for key, value in observers.reports(self.recording.observers).items():
                sink.add_to_run(key, value)
            for label in self.recording.parameters.missing():
                self.recording.notes.add(GRADIENTS_NOTE, label)
            notes = self.recording.notes.as_json()
            if notes:
                sink.add_to_run(NOTES, notes)
            if COMPILED_NOTE in notes:
                sink.add_to_run(COMPILED_NOTE, "eager")
            if self._frozen is not None and (left_out := self._frozen.take()):
                sink.add_to_run(FROZEN, left_out)
            if self.eager.missed:
                sink.add_to_run("skipped_code", ["torch.compile"])
        regions = self.regions.end_step()
        if sink is not None and regions:
            sink.add_to_run(COMPILED_REGIONS, regions)
        unseen = self.regions.end_unseen()
        if sink is not None and unseen:
            sink.count(BETWEEN_REGIONS, unseen)
        recorder = self.recording.recorder
        self.recording.close()
        if self._dedup is not None:
            self._dedup.end_step()
        if sink is None:
            return
        self._write_micro_steps(sink)
        self.micro.reset()
        for what, number in self.errors.counts.items():
            sink.count(f"hook_error {what}", number)
        self.errors.counts.clear()
        sink.close()
        if isinstance(sink, CountingSink):
            self._end_measuring(recorder)
            return
        if isinstance(sink, StepSink):
            self._spent += sink.tensor_bytes
            self._tell_first_step(sink)
            if sink.is_empty:
                self._tell_of_nothing(sink)
            self._earlier_files = sink.step_files()
        self._folder_lock.release()
        LOG.info("dump.json is at %s", sink.folder / (DEBUG_JSON if self.config.level == "debug" else DUMP_JSON))

    def _make_check(self) -> OverflowCheck | BenchCheck | None:
        check: OverflowCheck | BenchCheck | None = None
        if self.config.task == "overflow_check":
            check = self.recording.overflow = OverflowCheck(self.config, self._end)
        elif self.config.bench_path is not None:
            check = self.recording.bench = BenchCheck(self.config, self._end)
        return check

    def _end(self) -> None:
        """Record no more; the hooks are removed at the next stop."""
        self.ended = True
        self.recording.active = False

    def _file_filter(self) -> Callable[[str], bool] | None:
        """Tells by item name which tensors get a file; None where none does."""
        bench = self.recording.bench
        if bench is not None:
            return lambda item: bench.saving
        if self.config.task in ("tensor", "overflow_check"):
            return self._has_space
        names = self.config.tensor_list
        if self.config.task == "statistics" and names:
            return lambda item: any(name in item for name in names) and self._has_space(item)
        return None

    def _has_space(self, item: str) -> bool:
        """Whether tensor files may still be written: `max_gb` is not used up."""
        limit, sink = self.config.max_gb, self.sink
        if limit is None or not isinstance(sink, StepSink):
            return True
        if self._spent + sink.tensor_bytes < limit * GIB:
            return True
        if "files_over_max_gb" not in sink.counts:
            LOG.warning("max_gb: %g GiB of tensor files are written; from here on there are statistics only", limit)
        sink.count("files_over_max_gb")
        return False

    def set_free(self, nbytes: int) -> None:
        """Tensor files were deleted: `max_gb` allows others."""
        self._spent = max(self._spent - nbytes, 0)

    # -- size ----------------------------------------------------------------------------------------------------------

    def measure(self, models: Sequence[torch.nn.Module], *, numbered: bool, step: int) -> None:
        """Count what a step would write, and write nothing. `end_step` ends it."""
        if self.sink is None:
            recorder = SizeCounter(
                task=self.config.task,
                wants_tensor=self._file_filter(),
                dedup=self._dedup,
                frozen=self._frozen,
                slices=self.slices,
            )
            self._dedup = recorder.dedup
            self.sink, self.step = CountingSink(), step
            self.recording.open(self.sink, recorder)
        self._watch_models(models, numbered=numbered)
        self.resume()

    def _end_measuring(self, recorder: Any) -> None:
        if isinstance(recorder, SizeCounter):
            self._step_bytes = recorder.nbytes
            self._space_told("counted in step %d, a step with tensors writes up to %.3g GiB in %d files", self.step,
                             recorder.nbytes / GIB, recorder.tensors)  # fmt: skip

    def _tell_size(self) -> None:
        """Before the first step with tensors, if none could be counted: what its parameters alone take."""
        if self.config.task != "tensor" or self._told_size or self._step_bytes is not None:
            return
        self._told_size = True
        known = {id(one): one for model in self.models for one in model.parameters()}
        with Unobserved():
            kept = [one for one in known.values() if one.requires_grad or self._frozen is None]
            size = sum(one.numel() * one.element_size() for one in kept)
            gradients = sum(one.numel() * one.element_size() for one in kept if one.requires_grad)
        self._space_told(
            "the first step with tensors writes at least %.3g GiB (parameters %.3g, their gradients %.3g), and activations; an "
            "optimizer's calls, which optimizer: false leaves out, take several times the gradients",
            *(part / GIB for part in (size + gradients, size, gradients)),
        )

    def _tell_first_step(self, sink: StepSink) -> None:
        """After the first step with tensors: what it took."""
        if self.config.task == "tensor" and self._step_bytes is None:
            self._step_bytes = sink.tensor_bytes
            self._space_told("the first step with tensors took %.3g GiB", sink.tensor_bytes / GIB)

    def _tell_of_nothing(self, sink: StepSink) -> None:
        """Say once why a whole step has no node. A check that records what it finds may find nothing."""
        if self._told_of_nothing or self.recording.overflow is not None or self.recording.bench is not None:
            return
        self._told_of_nothing = True
        if self.config.list or self.config.scope:
            why = "list and scope of the configuration name no call of it"
        elif self.config.level == "L0":
            why = "level L0 records modules inside of the model, neither the model itself nor functions; mix and L1 do"
        else:
            why = f"nothing ran between start() and stop() that level {self.config.level} records at this risk level"
        LOG.warning("nothing of the step in %s was recorded: %s (told once)", sink.folder, why)

    def _space_told(self, text: str, *values: Any) -> None:
        """Log a size, and with it the steps asked for, the space that there is, and the limit."""
        asked = len(self.config.step)
        if self._step_bytes and asked > 1:
            text, values = f"{text}; {asked} steps: %.3g GiB", (*values, asked * self._step_bytes / GIB)
        limit = "no limit" if self.config.max_gb is None else f"{self.config.max_gb:g}"
        if self._step_bytes and self.config.max_gb is not None:
            limit += f", which is {self.config.max_gb * GIB / self._step_bytes:.3g} such steps"
        place = Path(self.config.dump_path).absolute()
        try:
            free = shutil.disk_usage(next(one for one in (place, *place.parents) if one.exists())).free
        except OSError:
            return
        LOG.info(f"{text}. Free: %.3g GiB, max_gb: %s", *values, free / GIB, limit)

    def _follow_rank(self, rank_id: int | None) -> None:
        """If init_process_group was called after the first start: rename proc123 to rank0."""
        now = rank_id if rank_id is not None else rank()
        if now is None or now == self.rank or self.sink is None:
            return
        self.rank = now
        folder = self.folder(self.step)
        if not is_free(folder):
            LOG.warning("another process writes into %s: this process stays in %s", folder, self.sink.folder)
            return
        self._keep_old(folder)
        self.sink.move(folder)

    def _keep_old(self, folder: Path) -> None:
        """Rename a folder with the data of an earlier run, so that it is not overwritten."""
        if folder in self._used or not any(
            (folder / name).exists() for name in (DUMP_JSON, DEBUG_JSON, STACK_JSON, CONSTRUCT_JSON, "dump.journal")
        ):
            self._used.add(folder)
            return
        self._used.add(folder)
        stamp = time.strftime("%Y%m%d-%H%M%S")
        kept = folder.parents[1] / f"earlier-{stamp}" / folder.parent.name / folder.name
        number = 0
        while kept.exists():
            number += 1
            kept = folder.parents[1] / f"earlier-{stamp}-{number}" / folder.parent.name / folder.name
        try:
            kept.parent.mkdir(parents=True, exist_ok=True)
            folder.rename(kept)
            LOG.warning("%s held an earlier run's dump; it is now %s", folder, kept)
        except OSError as error:
            LOG.warning(
                "%s holds an earlier run's dump and could not be renamed (%s): its files are replaced", folder, error
            )

    # -- optimizers ----------------------------------------------------------------------------------------------------

    def _watch_optimizers(self) -> None:
        if self.config.level == "mix" or not self.config.optimizer:
            self._handles = [
                register_optimizer_step_pre_hook(self._optimizer_begins),
                register_optimizer_step_post_hook(self._optimizer_ends),
            ]

    def _unwatch_optimizers(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def _optimizer_begins(self, optimizer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        frame = sys._getframe(1)
        with self.errors.guard("an optimizer's step"):
            if self.recording.active:
                self.recording.close_left(frame)
                given = (
                    code_of(value) for value in (*args, *kwargs.values()) if value is not optimizer and callable(value)
                )
                closures = frozenset(code for code in given if code is not None)
                self.recording.thread_state.steps.append(OptimizerStep(frame, closures))
                if self.config.optimizer:
                    self.recording.link_once(OPTIMIZER)

    def _optimizer_ends(self, *unused: Any) -> None:
        if self.recording.thread_state.steps:
            self.recording.thread_state.steps.pop()


def _wrap_list(config: Config) -> WrapList:
    """The calls that are nodes. Those that only move data are at risk level ALL, or where a list names one."""
    if config.wrap_ops is not None:
        return read_list(config.wrap_ops)
    return every_call(moves=config.risk_level == "ALL" or any(moving(name) for name in config.list))


def _kernels(config: Config, errors: HookErrors) -> kernels.KernelDump | None:
    """The kernel dump of level L2, if the device can make one."""
    device = kernels.ascend() if config.level == "L2" else None
    return kernels.KernelDump(device, config.list, config.scope, errors) if device is not None else None
