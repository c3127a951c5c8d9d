"""The one capture of a process, configured by calls that may come in any order: path, hook, switch.

It records while there is a hook and the switch is on. A change of settings while it records replaces the session; the numbers of
calls continue.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import torch

from dumpscope_capture import seeding
from dumpscope_capture.config import Config
from dumpscope_capture.context import LOG
from dumpscope_capture.device import environment_checks
from dumpscope_capture.ptdbg import acl
from dumpscope_capture.ptdbg.arguments import WORK_PATH, Hook, Place, Switch, check_place, check_root
from dumpscope_capture.ptdbg.errors import (
    CaptureEnd,
    Code,
    CompareException,
    DumpException,
    OverflowEnd,
    ParameterError,
)
from dumpscope_capture.ptdbg.findings import Findings
from dumpscope_capture.ptdbg.generations import Form, Spelling
from dumpscope_capture.ptdbg.mode_selection import ModeSelection
from dumpscope_capture.ptdbg.session import PklRecording, PklSession, PtdbgSession, Target
from dumpscope_capture.ptdbg.settings import from_environment

_HOOK: Final = 2
"""Index of the hook in `Capture._request()`."""
_NAMELESS: Final = "anonymous.pkl"
"""Name of the 2.3 file if the program gives none."""


class Capture:
    """What this process records; see `current_capture`. The functions of ptdbg change its settings, then call `apply`."""

    def __init__(self) -> None:
        self.settings = from_environment()
        self.place: Place | None = None
        self.hook: Hook | None = None
        self.switch = Switch()
        self.on = False
        self.unchecked = False
        self.backward_input: tuple[str, ...] = ()
        self.model: torch.nn.Module | None = None
        self.step = 0
        self.steps: tuple[int, ...] = ()
        self.narrowed: tuple[torch.nn.Module, str] | None = None
        self.session: PtdbgSession | None = None
        self._made_for: tuple[Any, ...] = ()
        self._turned_on = False
        self._overflows = 0
        self.guard = threading.RLock()
        self._pid = os.getpid()

    # -- settings ------------------------------------------------------------------------------------------------------

    def set_place(self, place: Place) -> None:
        with self.guard:
            if place.names_a_file or self.settings.generation != "2.3":
                pass
            elif Path(place.path).is_dir():
                raise DumpException(
                    Code.INVALID_PATH,
                    f"{os.path.abspath(place.path)} is a folder; generation 2.3 takes the path of the .pkl file",
                )
            with self._restoring():
                self.place = check_root(place, self.settings.generation)
                self.apply()

    def register(self, hook: Hook, model: torch.nn.Module | None) -> None:
        """Set the hook. model: record its modules instead of functions. Raises CompareException if the device lacks support."""
        with self.guard:
            if hook != self.hook:
                if hook.dump_mode == "acl":
                    acl.check(hook.dump_config)
                environment_checks.log_warnings()
            with self._restoring():
                self.hook, self.model = hook, model
                if hook.kind == "overflow" and not self.unchecked:
                    self.on = True
                self.apply()

    def turn_on(self, switch: Switch) -> None:
        with self.guard:
            if switch.mode == "acl" and self.hook is not None and self.hook.dump_mode != "acl":
                raise ParameterError("mode", "acl", "with register_hook(..., dump_mode='acl', dump_config='dump.json')")
            with self._restoring():
                self.switch, self.on, self.unchecked, self._turned_on = switch, True, False, True
                self.apply()

    def turn_off(self, *, check: bool = False) -> None:
        """Stop recording. check: also keep the overflow check off when its hook is registered later."""
        with self.guard:
            self.on = False
            self.unchecked = self.unchecked or check
            if self.hook is None and not check:
                LOG.warning("nothing was recorded: register_hook was never called")
            elif not check:
                LOG.info("Dump switch is turned off.")
            self.apply()

    def end_step(self) -> None:
        """End the training step: the next one has its own folder, and call numbers start at 0."""
        with self.guard:
            if self.session is not None:
                self.session.pause()
                self.session.end_step()
            self.step += 1
            self.apply()

    @contextmanager
    def _restoring(self) -> Iterator[None]:
        """Restore the old settings if the new ones raise CompareException."""
        before = self.place, self.hook, self.model, self.switch, self.on
        try:
            yield
        except CompareException:
            self.place, self.hook, self.model, self.switch, self.on = before
            raise

    # -- applying them ------------------------------------------------------------------------------------------------

    def apply(self) -> None:
        """Start, change or stop recording according to the settings."""
        if os.getpid() != self._pid:
            return
        session, wanted = self.session, self._request()
        over = session is not None and session.ended and self.hook == self._made_for[_HOOK]
        if not self.on or self.hook is None or over:
            if session is not None:
                session.pause()
                session.flush()
                if isinstance(session, PklSession):
                    session.leave_script()
            if over or self.hook is None or not self._counts():
                return
        counted: dict[str, int] = {}
        if session is None or wanted != self._made_for:
            session, counted = self._replace_session(session, wanted)
        models = [self.model] if self.model is not None else []
        if self.on:
            session.start(models, numbered=False, step=self.step, rank_id=self.hook.rank)
            if self._turned_on and isinstance(session, PklSession):
                session.start_over()
            self._turned_on = False
        elif isinstance(session, PklSession):
            session.count()
        session.recording.numbers.continue_from(counted)
        if self.narrowed is not None and session.scopes.empty:
            session.narrow(*self.narrowed)

    def _counts(self) -> bool:
        """Whether calls are numbered while nothing is recorded, as in ptdbg, once path and hook are set."""
        return self.place is not None and self.settings.layout == "ptdbg" and self.model is None

    def _replace_session(
        self, old: PtdbgSession | None, wanted: tuple[Any, ...]
    ) -> tuple[PtdbgSession, dict[str, int]]:
        """A session for new settings, and the call counts of the old one."""
        counted: dict[str, int] = {}
        if old is not None and self.hook == self._made_for[_HOOK]:
            if isinstance(old.recording.overflow, Findings):
                self._overflows += old.recording.overflow.count
        else:
            self._overflows = 0
        self.session, self._made_for = self._make(), wanted
        if old is not None:
            counted = old.recording.numbers.so_far()
            old.pause()
            old.end_step()
            if isinstance(self.session, PklSession) and self._overflows:
                self.session.continue_from(old)
        return self.session, counted

    def _request(self) -> tuple[Any, ...]:
        return (self.settings, self.place, self.hook, self.switch, self.backward_input, id(self.model), self.steps)

    def _make(self) -> PtdbgSession:
        assert self.hook is not None
        hook, switch, settings = self.hook, self.switch, self.settings
        place = self.place or _default_place(settings.generation)
        form = Form(generation=settings.generation or ("2.3" if place.names_a_file else "6.0"))
        overflow, msprobe = hook.kind == "overflow", settings.layout == "msprobe"
        if not overflow and form.generation != "2.3":
            seeding.remove_dropout()
        config = Config(
            numbering="msprobe",
            task=_task(switch, overflow=overflow),
            dump_path=_root(place, form),
            level="L0" if self.model is not None else "L1",
            extra_info=msprobe or overflow or switch.stacks,
            data_mode=switch.sides,
            summary_mode="md5" if switch.summary == "md5" else "statistics",
            risk_level="ALL",
            overflow_nums=hook.overflow_nums if hook.overflow_nums < 0 else hook.overflow_nums - self._overflows,
            wrap_ops=settings.wrap_ops,
            compiled="eager",  # its formats have no name for a region of compiled code
            custom_op_namespaces=settings.namespaces(form.generation),
        )
        spellings = {dotted: Spelling(Form(generation="6.0" if dotted else "4.0")) for dotted in (False, True)}
        spellings[form.dotted] = Spelling(form)
        selection = ModeSelection(
            config, mode=switch.mode, scope=switch.scope, api_list=switch.api_list,
            spellings=tuple(spellings.values()), exact=form.one_file,
        )  # fmt: skip
        options: dict[str, Any] = {"selection": selection, "wrap_list": settings.wrap_list(more=not msprobe)}
        if overflow:
            options["ending"] = self._ending
        session: PtdbgSession
        if msprobe:
            session = PtdbgSession(config, **options)
        else:
            number = hook.dump_step if hook.dump_step is not None else 1
            session = PklSession(
                config,
                Target(
                    place=place, form=form, mode=switch.mode, flag=number if form.one_file else 0,
                    filtered=switch.filtered if switch.filtered is not None else form.one_file,
                    steps=bool(self.steps), rank=hook.rank,
                ),
                spelling=spellings[form.dotted],
                **options,
            )  # fmt: skip
        if overflow:
            session.recording.overflow = Findings(config, session._end, hook, form)
        if overflow and hook.dump_mode == "acl" and isinstance(session.recording, PklRecording):
            session.recording.rerun_kernels = acl.reruns(hook.dump_config, session.errors)
        if switch.mode == "acl" and hook.dump_mode == "acl":
            kernels = acl.kernel_dump(hook.dump_config, switch.scope[0], self.backward_input, session.errors)
            session.kernels = session.recording.kernels = kernels
        return session

    def _ending(self, path: Path) -> CaptureEnd:
        assert self.hook is not None
        self.on = False
        message = f"overflow check: {self.hook.overflow_nums} found, as many as asked for; the last is in {path}"
        LOG.info("%s. Training ends here.", message)
        return OverflowEnd(message)

    # -- ends ----------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        with self.guard:
            session = self.session
            if session is not None and os.getpid() == self._pid:
                session.pause()
                session.flush()
                session.end_step()

    def silence(self) -> None:
        """In a forked child."""
        if self.session is not None:
            self.session.silence()


def _task(switch: Switch, *, overflow: bool) -> str:
    if overflow:
        return "overflow_check"
    if switch.mode == "stack":
        return "structure"
    return "tensor" if switch.summary == "all" else "statistics"


def _root(place: Place, form: Form) -> str:
    """Root folder of the msprobe layout."""
    return str(Path(place.path).parent) if form.one_file or place.names_a_file else place.path


def _default_place(generation: str | None) -> Place:
    if os.environ.get(WORK_PATH):
        return check_place(None, "ptdbg_dump")
    LOG.warning("set_dump_path was not called: data goes to the working directory, %s", os.getcwd())
    return Place(path=os.path.join(os.getcwd(), _NAMELESS) if generation == "2.3" else os.getcwd())


_captures: list[Capture] = []


def current_capture() -> Capture:
    """The one capture of this process."""
    if not _captures:
        _captures.append(Capture())
    return _captures[0]


def forget() -> None:
    """End the capture; the next call begins a new one, as in a new process."""
    while _captures:
        _captures.pop().close()


def _at_exit() -> None:
    for capture in _captures:
        capture.close()


def _after_fork() -> None:
    for capture in _captures:
        capture.silence()


atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
