"""Steps aside while compiled code runs, as torch.compile compiles anew when it meets a mode or a hook that it has not seen.

    recorded code --torch enters compiled code--> nothing of ours is installed --a call that is not compiled--> recorded code

torch tells dynamo's frame evaluation of each such change by `set_eval_frame`; this function is replaced between start and stop.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

import torch

from dumpscope_capture.calls.edges import sequence_number
from dumpscope_capture.hooks import functions
from dumpscope_capture.hooks.graphs import GRAPHS
from dumpscope_capture.hooks.patches import Patches

_SWITCHES: Final = ("set_eval_frame", "_maybe_set_eval_frame")


class _Thread(threading.local):
    """aside: this thread runs compiled code; silent: number of open regions; modes: what was taken from its stack

    sequence, frames: autograd sequence number when it entered or left a region, and number of frames compiled by then
    backward_modes: what was taken from it for the compiled backward calls that run
    """

    def __init__(self) -> None:
        self.aside = False
        self.silent = 0
        self.modes: list[functions.FunctionMode] = []
        self.backward_modes: list[list[functions.FunctionMode]] = []
        self.sequence = self.frames = 0


class Entering:
    """Takes hooks and modes away when a thread enters compiled code, and puts them back when it leaves.

    lift, lay: take away and put back what all threads share
    unseen: autograd nodes made inside compiled code by calls of no region: they ran eagerly and are not recorded
    """

    def __init__(self, *, lift: Callable[[], None], lay: Callable[[], None]) -> None:
        self._lift = lift
        self._lay = lay
        self._patches = Patches()
        self._thread = _Thread()
        self._lock = threading.Lock()
        self._inside = 0
        self.unseen = 0

    def install(self) -> None:
        if self._patches:
            return
        self._thread = _Thread()
        self._inside = 0
        frames = torch._dynamo.eval_frame
        for name in _SWITCHES:
            original = getattr(frames, name, None)
            if original is not None:
                self._patches.put(frames, name, self._switch(original, frames.skip_code))

    def remove(self) -> None:
        self._patches.undo()
        self._thread = _Thread()

    @property
    def aside(self) -> bool:
        """Whether this thread runs compiled code."""
        return self._thread.aside

    @property
    def inside_region(self) -> bool:
        """Whether this thread runs a region."""
        return self._thread.silent > 0

    def step_aside(self) -> bool:
        """Take everything away. Returns whether this thread was not aside before."""
        thread = self._thread
        if thread.aside:
            return False
        thread.aside = True
        thread.modes = functions.lift()
        self._mark(thread)
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._lift()
        return True

    def come_back(self) -> None:
        thread = self._thread
        if not thread.aside or thread.silent:
            return
        thread.aside = False
        self._count(thread)
        modes, thread.modes = thread.modes, []
        with self._lock:
            self._inside -= 1
            if self._inside == 0 and self._patches:
                self._lay()
        functions.lay(modes)

    def begin_region(self) -> bool:
        """A region runs. Argument of `end_region`."""
        came = self.step_aside()
        self._count(self._thread)
        self._thread.silent += 1
        return came

    def end_region(self, came: bool) -> None:
        self._thread.silent -= 1
        self._mark(self._thread)
        if came:
            self.come_back()

    def _mark(self, thread: _Thread) -> None:
        thread.sequence, thread.frames = sequence_number(), _frames()

    def _count(self, thread: _Thread) -> None:
        """Count calls that ran eagerly between two regions. Where code was compiled meanwhile, nothing is known: tracing makes
        autograd nodes too."""
        made = sequence_number() - thread.sequence
        if made > 0 and _frames() == thread.frames:
            self.unseen += made

    def begin_backward(self) -> None:
        """The backward of a region runs in this thread. autograd gives each of its nodes a copy of the stack of modes."""
        self._thread.backward_modes.append(functions.lift())

    def end_backward(self) -> None:
        if self._thread.backward_modes:
            functions.lay(self._thread.backward_modes.pop())

    def _switch(self, original: Callable[[Any], Any], skip: Callable[[Any], None]) -> Callable[[Any], Any]:
        """A replacement that runs no Python while frames are evaluated by dynamo, as dynamo would compile it."""

        def switch(callback: Any) -> Any:
            if callback is None:
                prior = original(None)
                if prior is not None:  # else dynamo itself runs, which compiles the code that this thread has entered
                    self.come_back()
                return prior
            self.step_aside()
            return original(callback)

        skip(switch.__code__)
        return switch


def _frames() -> int:
    """Number of frames that dynamo has tried to compile, and of graphs: it counts no frames with fullgraph."""
    return int(torch._dynamo.utils.counters["frames"]["total"]) + GRAPHS.made
