"""Triggers: the steps around the first one whose loss or gradient norm is too large or not a number stay on disk, others go.

    step 7   step 8   step 9   step 10 crosses a limit   step 11
    deleted  kept     kept     kept                      kept        keep 2, steps 2

Each process judges its own step and leaves a mark in the folder of the dump. In a job of several ranks the others look for marks
at the end of each step, so that all keep the same steps without a message of their own: they may see a mark one step late, and
hold one step more until then.
"""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from dumpscope_capture.config import Trigger
from dumpscope_capture.context import LOG, HookErrors, Unobserved
from dumpscope_capture.older_torch import is_compiling
from dumpscope_capture.record.marks import Marks
from dumpscope_capture.values.statistics import reason_absent
from dumpscope_capture.values.tensor_subclasses import unwrap
from dumpscope_format.paths import TENSOR_FOLDER, rank_folder

MARK: Final = "trigger-"
"""Beginning of the name of a mark: `trigger-rank3.json`."""

DROPPED: Final = ".dropped-"
"""Beginning of the name of a step that is being deleted."""

END_STATUS: Final = 3
"""Exit status of a job that a trigger ends."""


class TriggerEnd(SystemExit):
    """Ends the job, with status 3: a loss or a gradient norm is not a number and the configuration asks for the end."""

    def __init__(self) -> None:
        super().__init__(END_STATUS)


class TriggerWatch:
    """Judges steps, keeps the ring of the last ones, and says when to stop.

    root: folder of the dump; crossed: the first step that crossed a limit, on any rank; not_a_number: the first with a NaN
    over: there is nothing to watch any more
    """

    def __init__(self, trigger: Trigger, root: Path, errors: HookErrors) -> None:
        self.trigger = trigger
        self.crossed: int | None = None
        self.not_a_number: int | None = None
        self.over = False
        self._root = root
        self._errors = errors
        self._name = ""
        self._several = False
        self._ring: list[tuple[int, Path]] = []
        self._models: Sequence[torch.nn.Module] = ()
        self._squares: list[torch.Tensor] = []
        self._handle: Any = None
        self._told: set[str] = set()

    # -- what is watched -----------------------------------------------------------------------------------------------

    def begin(self, models: Sequence[torch.nn.Module], rank: int | None) -> None:
        """A step begins. models: whose gradients are read if no optimizer runs; rank: None for a job of one process"""
        if self.over:
            return
        self._models = models
        if not self._name:
            self._name, self._several = rank_folder(rank, os.getpid()), rank is not None
            self._marks = Marks(self._root, MARK, self._name)
            self._forget_earlier_run()
        if self._handle is None and self._needs_norm:
            self._handle = register_optimizer_step_pre_hook(self._before_optimizer)

    def remove(self) -> None:
        """Watch no longer."""
        handle, self._handle = self._handle, None
        if handle is not None:
            handle.remove()
        self._models, self._squares = (), []

    @property
    def _needs_norm(self) -> bool:
        return self.trigger.grad_norm is not None or self.trigger.nan or self.trigger.end == "after_nan"

    def _before_optimizer(self, optimizer: torch.optim.Optimizer, *unused: Any) -> None:
        """Take the norm of the gradients before the program may set them to zero. Nothing is read, so no device is waited for."""
        if is_compiling():  # torch.compile reads this code too, and is to find nothing in it
            return
        with self._errors.guard("a gradient norm"):
            self._squares += squared_norms(one for group in optimizer.param_groups for one in group["params"])

    # -- the end of a step ---------------------------------------------------------------------------------------------

    def judge(self, step: int, loss: Any, grad_norm: Any) -> list[str]:
        """Read loss and norm, which waits for their device, and look for marks. Returns why this step crosses a limit here."""
        reasons: list[str] = []
        with self._errors.guard("a trigger"):
            values = {"loss": self._number("loss", loss), "grad_norm": self._norm(grad_norm)}
            if all(value is None for value in values.values()):
                self._tell("step() got no loss, and no parameter has a gradient: a trigger has nothing to judge")
            limits = {"loss": self.trigger.loss, "grad_norm": self.trigger.grad_norm}
            nan = False
            for name, value in values.items():
                limit = limits[name]
                if value is None:
                    continue
                if math.isnan(value):
                    nan = True
                    if self.trigger.nan:
                        reasons.append(f"{name} is nan")
                elif limit is not None and value > limit:
                    reasons.append(f"{name} {value:g} > {limit:g}")
            self._note(step, reasons, nan=nan)
            if self._several:
                self._read_marks()
        self._squares = []
        return reasons

    def end_step(self, step: int, folder: Path | None) -> int:
        """Keep the folder that the step has written, and delete those that are not needed. Returns the bytes set free."""
        if folder is not None:
            self._ring.append((step, folder))
        late = 1 if self._several else 0
        if self.crossed is None:
            first = step + 1 - self.trigger.keep - late
        else:
            first = self.crossed - self.trigger.keep - (late if step < self.crossed + late else 0)
        gone = [(number, path) for number, path in self._ring if number < first]
        self._ring = [(number, path) for number, path in self._ring if number >= first]
        freed = 0
        for number, path in gone:
            with self._errors.guard("deleting a step"):
                freed += self._drop(number, path)
        return freed

    def records_no_more(self, step: int) -> bool:
        """Whether the steps to be recorded are over with this one."""
        return self.crossed is not None and step >= self._last()

    def ends_job(self, step: int) -> bool:
        """Whether the job is to end at the end of this step."""
        if self.trigger.end != "after_nan" or self.not_a_number is None:
            return False
        known = self.not_a_number + (1 if self._several else 0)
        return step >= max(known, self._last() if self.crossed is not None else known)

    def _last(self) -> int:
        """The last step to be recorded: with several ranks one more, in which all of them learn of the crossing."""
        assert self.crossed is not None
        return self.crossed + max(self.trigger.steps, 2 if self._several else 1) - 1

    # -- values --------------------------------------------------------------------------------------------------------

    def _norm(self, given: Any) -> float | None:
        if given is not None or not self._needs_norm:
            return self._number("grad_norm", given)
        parts = self._squares or squared_norms(one for model in self._models for one in model.parameters())
        return math.sqrt(sum(float(part) for part in parts)) if parts else None

    def _number(self, name: str, value: Any) -> float | None:
        if isinstance(value, torch.Tensor):
            with Unobserved():
                _, value, _, absent = unwrap(value)
                if absent is None and value.numel() == 1:
                    return float(value.detach())
        elif value is None or isinstance(value, (int, float)):
            return None if value is None else float(value)
        self._tell(f"step({name}=...) takes a number or a tensor with one element, not a {type(value).__name__}")
        return None

    def _tell(self, text: str) -> None:
        """Warn once."""
        if text not in self._told:
            self._told.add(text)
            LOG.warning("%s", text)

    # -- marks ---------------------------------------------------------------------------------------------------------

    def _note(self, step: int, reasons: list[str], *, nan: bool) -> None:
        """Remember, and leave on disk for other ranks, the first step that crosses a limit and the first with a NaN."""
        new = False
        if reasons and (self.crossed is None or step < self.crossed):
            new, self.crossed = True, step
            LOG.warning(
                "step %d: %s. It stays on disk, with up to %d steps before it",
                step,
                "; ".join(reasons),
                self.trigger.keep,
            )
        if nan and self.not_a_number is None:
            new, self.not_a_number = True, step
        if new:
            self._marks.leave({"step": self.crossed, "reasons": reasons, "nan_step": self.not_a_number})

    def _read_marks(self) -> None:
        """Take over what other ranks have found first."""
        for found in self._marks.of_others():
            step, nan = found.get("step"), found.get("nan_step")
            if step is not None and (self.crossed is None or step < self.crossed):
                LOG.warning(
                    "step %d crossed a limit on %s: %s", step, found.get("process"), "; ".join(found.get("reasons", []))
                )
                self.crossed = step
            if nan is not None and (self.not_a_number is None or nan < self.not_a_number):
                self.not_a_number = nan

    def _forget_earlier_run(self) -> None:
        """Remove what an earlier run of this process's name left, and remember the marks of others."""
        with self._errors.guard("a trigger"):
            for path in self._root.glob(f"{DROPPED}*-{self._name}"):
                shutil.rmtree(path, ignore_errors=True)
            self._marks.forget_earlier()

    # -- the ring ------------------------------------------------------------------------------------------------------

    def _drop(self, step: int, folder: Path) -> int:
        """Delete a step's folder: out of sight at once, by a rename. Returns the bytes of its tensor files that no other step
        links."""
        away = self._root / f"{DROPPED}step{step}-{self._name}"
        folder.rename(away)
        files = [path.stat() for path in (away / TENSOR_FOLDER).glob("*")]
        names = Counter(about.st_ino for about in files)
        sizes = {about.st_ino: about.st_size for about in files if about.st_nlink == names[about.st_ino]}
        shutil.rmtree(away)
        with contextlib.suppress(OSError):  # other ranks are still in it
            folder.parent.rmdir()
        return sum(sizes.values())


def squared_norms(parameters: Iterable[torch.Tensor]) -> list[torch.Tensor]:
    """Squared norm of the gradients of this process, one number a device, not read yet. Of a sharded gradient its own part."""
    by_device: dict[torch.device, list[torch.Tensor]] = {}
    with Unobserved():
        for parameter in parameters:
            gradient = getattr(parameter, "main_grad", None)
            gradient = parameter.grad if gradient is None else gradient
            if gradient is None:
                continue
            _, plain, _, absent = unwrap(gradient)
            if absent is None and plain.is_sparse:
                plain = plain.coalesce().values()
            if absent is None and reason_absent(plain) is None:
                norm = torch.linalg.vector_norm(plain, dtype=torch.promote_types(plain.dtype, torch.float32))
                by_device.setdefault(norm.device, []).append(norm.float())
        return [torch.stack(norms).square().sum() for norms in by_device.values()]


def in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
