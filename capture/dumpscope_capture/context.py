"""The running program: its rank, log and call stack, and a state in which our own tensor work leaves no trace in it."""

from __future__ import annotations
import __future__ as future

import linecache
import logging
import os
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import CodeType, FrameType
from typing import Any, Final

import torch

from dumpscope_capture.older_torch import disable_modes, no_transforms

_LEVELS: Final = {
    "0": logging.DEBUG,
    "1": logging.INFO,
    "2": logging.WARNING,
    "3": logging.ERROR,
    "4": logging.CRITICAL + 1,
}
_HERE: Final = os.path.dirname(os.path.abspath(__file__)) + os.sep
_DEMO: Final = os.path.join(_HERE, "demo.py")  # an example of a user's program, so it is shown in stacks
_HIDDEN: Final = (_HERE, os.path.join(os.path.dirname(torch.__file__), "overrides.py"))
STACK_LIMIT: Final = 100
_LAUNCHERS: Final = (
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
)
"""Variables of a process's rank and of the number of processes."""

_frame_texts: dict[tuple[int, int], tuple[CodeType, str | None]] = {}
"""Texts by (id of the code object, instruction); the id is faster to look up than the object."""

_sources: dict[str, tuple[CodeType, list[str]]] = {}
"""By file: code that ran from it, and its lines as they were when the first frame of it was met."""

_FUTURES: Final = sum(getattr(future, name).compiler_flag for name in future.all_feature_names)


def _logger() -> logging.Logger:
    logger = logging.getLogger("dumpscope")
    if not logger.handlers and not logging.getLogger().handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s (%(process)d) [%(levelname)s] dumpscope: %(message)s"))
        logger.addHandler(handler)
        logger.propagate = False
    word = os.environ.get("DUMPSCOPE_LOG_LEVEL", os.environ.get("MSPROBE_LOG_LEVEL", "1"))
    logger.setLevel(_LEVELS.get(word, logging.INFO))
    return logger


LOG: Final = _logger()


class HookErrors:
    """Errors of the capture itself. Each kind is logged once, all are counted, and none reaches the training program."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self._lock = threading.Lock()

    def note(self, where: str, error: BaseException) -> None:
        key = f"{where}: {type(error).__name__}"
        with self._lock:
            self.counts[key] = self.counts.get(key, 0) + 1
            first = self.counts[key] == 1
        if first:
            LOG.warning("the capture of %s failed, training continues: %s: %s", where, type(error).__name__, error)
            LOG.debug("the traceback", exc_info=error)

    @contextmanager
    def guard(self, where: str) -> Iterator[None]:
        """Swallow, log once and count whatever the block raises."""
        try:
            yield
        except Exception as error:
            self.note(where, error)


class Unobserved:
    """`with Unobserved():` for our own tensor work: no autograd graph, mode, function transform or subclass notices it.

    The state belongs to the thread and is restored afterwards, also after an exception.
    """

    __slots__ = ("_grad", "_modes", "_subclasses")

    def __enter__(self) -> None:
        self._subclasses = torch._C.DisableTorchFunction()
        self._subclasses.__enter__()  # first: modes see the switch of gradients
        self._grad = torch._C.is_grad_enabled()
        if self._grad:
            torch._C._set_grad_enabled(False)
        self._modes: ExitStack | None = None
        if torch._C._len_torch_dispatch_stack() or torch._C._functorch.peek_interpreter_stack() is not None:
            self._modes = ExitStack()
            self._modes.enter_context(no_transforms())
            self._modes.enter_context(disable_modes())

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self._modes is not None:
            self._modes.close()
        if self._grad:
            torch._C._set_grad_enabled(True)
        self._subclasses.__exit__(None, None, None)


def rank() -> int | None:
    """This process's rank: torch.distributed's, else the launcher's, None outside a distributed job."""
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_rank())
    for place, size in _LAUNCHERS:
        number, total = _variable(place), _variable(size)
        if number is not None and total is not None and total > 1:
            return number
    return _rank_of_node()


def _rank_of_node() -> int | None:
    """Rank from launchers that number the processes of each node: LOCAL_RANK plus the processes of the nodes before."""
    local, size = _variable("LOCAL_RANK"), _variable("LOCAL_WORLD_SIZE")
    node = next((number for word in ("GROUP_RANK", "NODE_RANK") if (number := _variable(word)) is not None), 0)
    total = _variable("WORLD_SIZE") or 1
    if local is None or max(total, size or 1) < 2 or (node and size is None):
        return None
    return node * (size or 0) + local


def _variable(name: str) -> int | None:
    text = os.environ.get(name, "")
    return int(text) if text.isdecimal() else None


def peek(owner: Any, name: str) -> Any:
    """An attribute of another package's object, None where it has none or reading it raises: modules that load on use raise any
    kind of error where something is missing."""
    try:
        return getattr(owner, name, None)
    except KeyboardInterrupt:
        raise
    except BaseException:
        return None


def is_running(wanted: FrameType, frame: FrameType | None) -> bool:
    """Whether a frame is `frame` or one that called it, directly or not."""
    while frame is not None:
        if frame is wanted:
            return True
        frame = frame.f_back
    return False


def call_stack(frame: FrameType | None) -> tuple[str, ...]:
    """Texts of the frames from `frame` outwards, innermost first; those of this package and of torch.overrides left out."""
    texts: list[str] = []
    known = _frame_texts
    while frame is not None and len(texts) < STACK_LIMIT:
        code = frame.f_code
        key = (id(code), frame.f_lasti)
        found = known.get(key)
        if found is None:
            found = known[key] = (code, _frame_text(frame))  # keeps the code alive, so that its id is not reused
        text = found[1]
        if text is not None:
            texts.append(text)
        frame = frame.f_back
    return tuple(texts)


def _frame_text(frame: FrameType) -> str | None:
    code = frame.f_code
    path = code.co_filename
    if path.startswith(_HIDDEN) and path != _DEMO:
        return None
    number = frame.f_lineno
    lines = _lines(path, frame.f_globals)
    if path not in _sources:
        _sources[path] = code, lines
    source = lines[number - 1].strip() if 0 < number <= len(lines) else ""
    return f"File {path}, line {number}, in {code.co_name}, \n {source}"


def _lines(path: str, names: dict[str, Any]) -> list[str]:
    """Lines of a file as they were when first asked for, those of a loader or a notebook too; [] where it has none."""
    try:
        return linecache.getlines(path, names)
    except Exception:  # of a loader, or text that cannot be decoded, before Python 3.10
        return []


def source_text(path: str) -> tuple[str, bool] | None:
    """Text of a file that a call stack named, and whether it is another text than the one that runs; None where there is none."""
    code, lines = _sources.get(path, (None, []))
    if code is None or not lines:
        return None
    text = "".join(lines)
    return text, _changed_since(path, _started()) and not _holds(text, code)


def _started() -> float:
    """When this process began, in seconds since the epoch; 0 where that is not known."""
    try:
        with open("/proc/self/stat", "rb") as stream:
            ticks = int(stream.read().rpartition(b")")[2].split()[19])
        return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return 0.0


def _changed_since(path: str, moment: float) -> bool:
    try:
        state = os.stat(path)
    except OSError:  # it is gone, or never was: what was read is all there is
        return False
    return max(state.st_mtime, state.st_ctime) > moment


def _holds(text: str, code: CodeType) -> bool:
    """Whether compiling a text gives this code at its line."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = [compile(text, code.co_filename, "exec", code.co_flags & _FUTURES, dont_inherit=True)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    while made:
        one = made.pop()
        if one.co_firstlineno == code.co_firstlineno and one.co_name == code.co_name and one.co_code == code.co_code:
            return True
        made += [part for part in one.co_consts if isinstance(part, CodeType)]
    return False
