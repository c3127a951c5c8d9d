"""PrecisionDebugger: the interface for training scripts."""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch

from dumpscope_capture.config import Config, ConfigError, ConfigWatcher, load, patterns
from dumpscope_capture.context import LOG, rank
from dumpscope_capture.hooks.custom import CustomCalls
from dumpscope_capture.hooks.graphs import GRAPHS
from dumpscope_capture.hooks.token_range import TokenWindow
from dumpscope_capture.interventions import activate
from dumpscope_capture.proof.call_counter import CALL_COUNTER
from dumpscope_capture.record.saved_values import ValueSaver
from dumpscope_capture.record.triggers import TriggerEnd, TriggerWatch, in_main_thread
from dumpscope_capture.session import Session
from dumpscope_format.run import TRIGGER


class ClassOrInstance:
    """Method that also works on the class: `PrecisionDebugger.start()` calls `start` of the one instance."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.__doc__ = function.__doc__

    def __get__(self, instance: PrecisionDebugger | None, owner: type[PrecisionDebugger]) -> Callable[..., Any]:
        method: Callable[..., Any] = self._function.__get__(
            instance if instance is not None else owner.the_one(), owner
        )
        return method


class PrecisionDebugger:
    """Dumps what a model computes, step by step.

        debugger = PrecisionDebugger("config.json")
        for batch in data:
            debugger.start(model)
            loss = train(batch)
            debugger.stop()
            debugger.step()

    One process has one instance for one set of arguments: the same arguments, or none, return it. Other arguments make a
    second recorder with a folder of its own; one of them records at a time. Raises ConfigError.
    """

    _instance: PrecisionDebugger | None = None
    _others: ClassVar[list[PrecisionDebugger]] = []
    _guard = threading.RLock()

    def __new__(
        cls,
        config_path: str | None = None,
        task: str | None = None,
        dump_path: str | None = None,
        level: str | None = None,
        model: torch.nn.Module | Sequence[torch.nn.Module] | None = None,
        step: list[int | str] | None = None,
    ) -> PrecisionDebugger:
        with cls._guard:
            arguments = {"task": task, "dump_path": dump_path, "level": level, "step": step}
            found = _made_with(config_path, arguments, model)
            if found is not None:
                return found
            made = super().__new__(cls)
            made._ready = False
            return made

    def __init__(
        self,
        config_path: str | None = None,
        task: str | None = None,
        dump_path: str | None = None,
        level: str | None = None,
        model: torch.nn.Module | Sequence[torch.nn.Module] | None = None,
        step: list[int | str] | None = None,
    ) -> None:
        self._ready: bool
        if self._ready:
            return
        self._overrides = {"task": task, "dump_path": dump_path, "level": level, "step": step}
        self._path = config_path
        config, notes = load(config_path, **self._overrides)
        if model is not None:
            _models(model)
        self._custom = CustomCalls()
        self._take(config)
        for note in notes:
            LOG.warning("%s", note)
        activate()
        self._model = model
        self._pid = os.getpid()
        self._loop = 0
        self._init_step = 0
        self._ended = False
        self._was_started = self._told_of_start = False
        self._held: int | None = None
        self._reasons: list[str] = []
        self._watcher = (
            ConfigWatcher(config_path) if config.dump_enable is not None and config_path is not None else None
        )
        self._ready = True
        with self._guard:
            if PrecisionDebugger._instance is None:
                PrecisionDebugger._instance = self
            else:
                PrecisionDebugger._others.append(self)
                LOG.warning(
                    "a second PrecisionDebugger, which writes to %s; what is called on the class means the one that records, "
                    "else the first, of %s",
                    config.dump_path,
                    PrecisionDebugger._instance.config.dump_path,
                )
        atexit.register(self._at_exit)

    def _take(self, config: Config) -> None:
        self._config = config
        self._session = Session(config)
        session = self._session
        self._custom.recording = session.recording
        self._saver = ValueSaver(session.recording, lambda step: session.open(step, None))
        self._window: TokenWindow | None = None
        trigger = config.trigger
        self._trigger = None if trigger is None else TriggerWatch(trigger, Path(config.dump_path), session.errors)

    @classmethod
    def the_one(cls) -> PrecisionDebugger:
        """The instance that records now, else the first."""
        if PrecisionDebugger._instance is None:
            raise RuntimeError("PrecisionDebugger instance is not created.")
        return next((one for one in PrecisionDebugger._others if one._session.installed), PrecisionDebugger._instance)

    @classmethod
    def all(cls) -> list[PrecisionDebugger]:
        """The instances of this process, in the order in which they were made."""
        first = PrecisionDebugger._instance
        return [] if first is None else [first, *PrecisionDebugger._others]

    @property
    def config(self) -> Config:
        return self._config

    # -- calls of a training script ------------------------------------------------------------------------------------

    @ClassOrInstance
    def start(
        self,
        model: torch.nn.Module | Sequence[torch.nn.Module] | None = None,
        token_range: Sequence[int] | None = None,
        rank_id: int | None = None,
        scheduled_tokens: Mapping[str, int] | None = None,
    ) -> None:
        """Begin to record. model: needed at levels L0 and mix; a list numbers its members.

        token_range: first and last forward pass of the (first) model to record, both included, counted from 0 in each step;
            it holds until the next start
        rank_id: this process's rank, where torch.distributed does not know it
        scheduled_tokens: of a server, the number of tokens of each request in the batch that comes, in their order; with the key
            `request_id` of the configuration only the tokens of that request are recorded, and nothing where it is not among them
        """
        with self._guard:
            self._was_started = True
            self._reload()
            for other in self.all():
                if other is not self and other._session.installed:
                    raise RuntimeError(
                        f"the PrecisionDebugger of {other.config.dump_path} records: stop() it before another one starts"
                    )
            if rank_id is not None and (isinstance(rank_id, bool) or not isinstance(rank_id, int) or rank_id < 0):
                raise ConfigError("rank_id", rank_id, "a number from 0")
            if scheduled_tokens is not None and not isinstance(scheduled_tokens, Mapping):
                raise ConfigError("scheduled_tokens", scheduled_tokens, "numbers of tokens by the names of requests")
            given = model if model is not None else self._model
            models = _models(given) if given is not None else []
            if not models and (self._config.modules or token_range is not None):
                raise ConfigError(
                    "model", model, f"an nn.Module or a list of them (level {self._config.level}, or token_range)"
                )
            if self._config.level == "debug" or self._config.task == "acc_check":
                return
            if self._config.compiled == "graph":
                GRAPHS.watch()  # also in steps that are not recorded, as code is compiled once
            session = self._session
            if self._trigger is not None and (not self._config.step or self.current_step in self._config.step):
                self._trigger.begin(models, rank_id if rank_id is not None else rank())
            if not self._may_record(rank_id):
                if self._counts_size(rank_id):
                    session.measure(models, numbered=isinstance(given, (list, tuple)), step=self.current_step)
                return
            if not session.slices.take_request(self._config.request_id, scheduled_tokens):
                LOG.info("request %s is not in this batch, which is not recorded", self._config.request_id)
                return
            window = TokenWindow(session, token_range) if token_range is not None else None
            session.start(models, numbered=isinstance(given, (list, tuple)), step=self.current_step, rank_id=rank_id)
            if self._reasons and session.sink is not None:
                session.sink.add_to_run(TRIGGER, self._reasons)
                self._reasons = []
            if self._window is not None and self._window != window:
                self._window.end()
                self._window = None
            if window is not None:
                self._window = self._window or window
                self._window.begin(models[0])

    @ClassOrInstance
    def stop(self) -> None:
        """Stop recording and write all data to disk. `start` in the same step continues in the same files."""
        with self._guard:
            if os.getpid() != self._pid or self._config.level == "debug":
                return
            self._tell_of_start("stop()")
            if self._window is not None:
                self._window.end()
            self._session.pause()
            self._session.recording.passes.settle()
            self._session.flush()
            self._reload()

    @ClassOrInstance
    def step(self, loss: Any = None, grad_norm: Any = None) -> None:
        """End the training step and close its files; the next start opens the next step.

        loss, grad_norm: for a trigger, numbers or tensors with one element; without grad_norm that of the gradients is taken, at
            the optimizer's step or else now
        Raises SystemExit with status 3 where a trigger ends the job.
        """
        if self._end_step(loss, grad_norm):
            if in_main_thread():
                raise TriggerEnd
            LOG.error("the job is to end, but step() was called in another thread than the main one: it goes on")

    def _end_step(self, loss: Any, grad_norm: Any) -> bool:
        """`step`. Returns whether the job is to end."""
        with self._guard:
            if os.getpid() != self._pid:
                return False
            watching = self._window is not None and self._window.watching
            running = self._session.installed or watching
            self._tell_of_start("step()")
            self._was_started = running
            ends = self._judge(loss, grad_norm)
            if self._held and self._session.sink is not None:
                self._held -= 1
            self._session.pause()
            self._session.end_step()
            self._saver.reset()
            CALL_COUNTER.reset()
            self._loop += 1
            if self._window is not None:
                self._window.reset()
            self._reload()
            if running and self._may_record(None):
                self._session.open(self.current_step, None)
                self._session.resume()
                if self._window is not None:
                    self._window.limit()
                if self._trigger is not None:
                    self._trigger.begin(self._session.models, rank())
            return ends

    def _judge(self, loss: Any, grad_norm: Any) -> bool:
        """What a trigger says at the end of a step, before its files are closed. Returns whether the job is to end."""
        watch, step, session = self._trigger, self.current_step, self._session
        if watch is None or watch.over or (self._config.step and step not in self._config.step):
            return False
        reasons = watch.judge(step, loss, grad_norm)
        sink = session.sink
        if sink is not None and reasons:
            sink.add_to_run(TRIGGER, reasons)
        session.pause()
        session.end_step()
        session.set_free(watch.end_step(step, sink.folder if sink is not None else None))
        if watch.records_no_more(step) and not self._ended:
            self._ended = True
            LOG.info("the steps around the one that crossed a limit are recorded: the capture ends")
        ends = watch.ends_job(step)
        if ends:
            LOG.error(
                "a loss or gradient norm is not a number in step %s: the job ends, as trigger.end asks",
                watch.not_a_number,
            )
        if ends or (watch.records_no_more(step) and watch.trigger.end == "never"):
            watch.over = True
            watch.remove()
        return ends

    @ClassOrInstance
    def forward_backward_dump_end(self) -> None:
        """Old name of `stop`."""
        self.stop()

    @ClassOrInstance
    def save(self, variable: Any, name: str, save_backward: bool = True) -> None:
        """Record a value at level debug. save_backward: also its gradient when it arrives."""
        with self._guard:
            if self._config.level != "debug":
                return
            if not isinstance(name, str) or not isinstance(save_backward, bool):
                LOG.warning("save(): name must be a text and save_backward a bool, got %r and %r", name, save_backward)
                return
            self._reload()
            if self._may_record(None):
                self._saver.save(variable, name, save_backward, step=self.current_step)

    @ClassOrInstance
    def save_call(self, *names: str) -> None:
        """Save calls with all arguments before they run, from the next start on. names: `"Functional.group_norm.3"`, or patterns.

        The files go to `saved_calls/` of the rank's folder; `dumpscope_capture.saved_call.load` reads them. Raises ConfigError.
        """
        with self._guard:
            self._session.saver.add(patterns("save_calls", names))

    @ClassOrInstance
    def set_init_step(self, step: int) -> None:
        """Set the number of the next step, from which counting continues: for runs that resume from a checkpoint."""
        if isinstance(step, bool) or not isinstance(step, int) or step < 0:
            raise ConfigError("step", step, "a number from 0")
        with self._guard:
            self._init_step = step
            self._loop = 0

    @ClassOrInstance
    def hold(self) -> None:
        """Record nothing from the next step on, until `release`."""
        with self._guard:
            self._held = 0

    @ClassOrInstance
    def release(self, steps: int, reasons: Sequence[str] = ()) -> None:
        """Record the next steps that are started, so many, then hold again. reasons: why, for run.json of the first one"""
        if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
            raise ConfigError("steps", steps, "a number from 1")
        with self._guard:
            self._held, self._reasons = steps, list(reasons)

    @property
    def waits(self) -> bool:
        """Whether it is held, with no step left that `release` asked for."""
        return self._held == 0

    @ClassOrInstance
    def register_custom_api(self, module: Any, api: str, api_prefix: str | None = None) -> None:
        """Record calls of `module.api` as `{api_prefix}.{api}.n.forward`; the attribute is replaced until
        `restore_custom_api`."""
        self._custom.register(module, api, api_prefix)

    @ClassOrInstance
    def restore_custom_api(self, module: Any, api: str) -> None:
        """Undo `register_custom_api`."""
        self._custom.restore(module, api)

    def __enter__(self) -> PrecisionDebugger:
        self.start()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.stop()
        if error is None:
            self.step()

    # -- inside --------------------------------------------------------------------------------------------------------

    @property
    def current_step(self) -> int:
        return self._init_step + self._loop

    def _tell_of_start(self, call: str) -> None:
        """Say once that a step records nothing because `start` was not called in it."""
        config = self._config
        if self._was_started or self._told_of_start or config.level == "debug" or config.task == "acc_check":
            return
        if (
            not self._ended
            and config.dump_enable is not False
            and (not config.step or self.current_step in config.step)
        ):
            self._told_of_start = True
            LOG.warning(
                "%s in step %d, but start() was not called: nothing is recorded (told once)", call, self.current_step
            )

    def _may_record(self, rank_id: int | None) -> bool:
        config = self._config
        if self._ended or self._session.ended or os.getpid() != self._pid or config.dump_enable is False:
            return False
        if self._held == 0:
            return False
        if config.step and self.current_step > config.step[-1]:
            self._ended = True
            self._session.pause()
            self._session.end_step()
            LOG.info("dumpscope ends successfully: the last step asked for is recorded.")
            return False
        if config.step and self.current_step not in config.step:
            return False
        if config.rank:
            number = rank_id if rank_id is not None else rank()
            if number not in config.rank:
                self._ended = True
                LOG.warning(
                    "rank %s is not in the rank list %s: this process records nothing", number, list(config.rank)
                )
                return False
        return True

    def _counts_size(self, rank_id: int | None) -> bool:
        """Whether the tensors of this step are counted, as it is the last one before the first that is recorded."""
        config = self._config
        if config.task != "tensor" or not config.step or self.current_step != config.step[0] - 1 or self._ended:
            return False
        of_rank = not config.rank or (rank_id if rank_id is not None else rank()) in config.rank
        return of_rank and config.level in ("L0", "L1", "mix") and config.dump_enable is not False

    def _reload(self) -> None:
        """Read a changed config file again, if it has the key dump_enable."""
        if self._watcher is None or not self._watcher.has_changed(enabled=self._config.dump_enable is True):
            return
        try:
            config, notes = load(self._watcher.path, **self._overrides)
        except ConfigError as error:
            LOG.error("the changed configuration is invalid, recording is off: %s", error)
            config, notes = Config(**{**_fields(self._config), "dump_enable": False}), []
        for note in notes:
            LOG.warning("%s", note)
        if config != self._config:
            if self._window is not None:
                self._window.end()
            self._session.pause()
            self._session.end_step()
            self._ended = False
            if self._trigger is not None:
                self._trigger.remove()
            self._take(config)
            LOG.info("the configuration was read again; dump_enable is %s", config.dump_enable)

    def _at_exit(self) -> None:
        if os.getpid() == self._pid:
            self._session.pause()
            self._session.end_step()
            if self._trigger is not None:
                self._trigger.remove()


def _after_fork() -> None:
    """Forked children, such as data loader workers, never record."""
    for instance in PrecisionDebugger.all():
        instance._session.silence()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _fields(config: Config) -> dict[str, Any]:
    return {name: getattr(config, name) for name in Config.__dataclass_fields__}


def _made_with(config_path: str | None, arguments: dict[str, Any], model: Any) -> PrecisionDebugger | None:
    """The instance that these arguments mean; None for a new one. Raises ConfigError where a new one cannot be made beside it."""
    made = PrecisionDebugger.all()
    blank = config_path is None and all(value is None for value in arguments.values())
    if not made or (blank and model is None):
        return PrecisionDebugger.the_one() if made else None
    for one in made:
        watched = one._watcher is not None and (config_path, arguments) == (one._path, one._overrides)
        if blank or watched or load(config_path, **arguments)[0] == one.config:
            if model is not None and one._model is not None and model is not one._model:
                raise ConfigError(
                    "model", type(model).__name__, "the model given before; give another one to start() instead"
                )
            one._model = one._model if model is None else model
            return one
    config = load(config_path, **arguments)[0]
    for one in made:
        if os.path.abspath(config.dump_path) == os.path.abspath(one.config.dump_path):
            raise ConfigError(
                "dump_path",
                config.dump_path,
                "another folder: a PrecisionDebugger with other settings already writes there (the same arguments, or none, "
                "give that one)",
            )
    return None


def _models(given: Any) -> list[torch.nn.Module]:
    models = list(given) if isinstance(given, (list, tuple)) else [given]
    for model in models:
        if not isinstance(model, torch.nn.Module):
            raise ConfigError("model", type(model).__name__, "an nn.Module, or a list of them")
    if not models:
        raise ConfigError("model", given, "an nn.Module, or a list of them that is not empty")
    return models


def module_dump(module: torch.nn.Module, name: str) -> None:
    """Record only this module, as `Module.{name}.Class`, and no functions, until `module_dump_end`. Raises ConfigError."""
    if not isinstance(module, torch.nn.Module) or isinstance(module, torch.jit.ScriptModule):
        raise ConfigError("module", type(module).__name__, "an nn.Module that is not scripted")
    if not isinstance(name, str) or not name:
        raise ConfigError("dump_name", name, "a text")
    PrecisionDebugger.the_one()._session.narrow(module, name)


def module_dump_end() -> None:
    """Undo `module_dump`."""
    PrecisionDebugger.the_one()._session.widen()
