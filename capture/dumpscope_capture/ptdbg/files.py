"""A .pkl file and its folder of .npy files. When `add` returns the call is on disk, tensors first.

A kill loses at most the running call and cuts at most the last line. Nothing here raises for an error of the disk: records are
lost, and the log and a counter say so.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

from dumpscope_capture.context import LOG, Unobserved
from dumpscope_capture.ptdbg.generations import MODULE_FLAG, OVERFLOW_FLAG, Form, Spelling
from dumpscope_capture.ptdbg.lines import Line, LineRecorder
from dumpscope_capture.values.snapshots import Snapshot
from dumpscope_format.naming import parse
from dumpscope_format.older_python import dataclass, without_suffix

FILE_MODE: Final = 0o640
FOLDER_MODE: Final = 0o750
PKL: Final = ".pkl"
_ORDER: Final = ("input_args", "input", "output")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is written to the files. mode: of the switch; stem: file name without .pkl; flag: second field of the lines"""

    form: Form
    mode: str
    stem: str
    flag: int
    stacks: bool
    overflow: bool


class PklSink:
    """Writes one rank of one step. Safe for threads.

    open_folder: makes and locks the rank's folder, called for the first call
    on_write: called after each written call, with the path of the .pkl file; found: number of overflows in earlier steps
    """

    def __init__(
        self,
        plan: Plan,
        *,
        recorder: LineRecorder,
        spelling: Spelling,
        open_folder: Callable[[tuple[str, ...]], Path],
        on_write: Callable[[Path], None],
        found: int = 0,
    ) -> None:
        self.folder = Path()
        self.counts: dict[str, int] = {}
        self.active = True
        self._plan = plan
        self._recorder = recorder
        self._spelling = spelling
        self._open_folder = open_folder
        self._on_write = on_write
        self._lock = threading.RLock()
        self._pid = os.getpid()
        self._handle = -1
        self._closed = False
        self._opened = False
        self._over = False
        self._names: set[str] = set()
        self._waiting: dict[str, Snapshot] = {}
        self._stacks: dict[str, tuple[str, ...]] = {}
        self._same: dict[tuple[str, ...], tuple[str, ...]] = {}
        self.found = found

    # -- records -------------------------------------------------------------------------------------------------------

    def add(
        self, name: str, body: Any, *, stack: tuple[str, ...] | None = None, parent: Any = None, linked: bool = True
    ) -> None:
        """Write a finished call. A repeated name, from a second backward pass of one graph, is not written."""
        if os.getpid() != self._pid:
            return
        path: Path | None = None
        with self._lock, Unobserved():
            self._take_snapshots()
            lines = list(_flat(body.get(key) for key in _ORDER))
            empty = not lines and any(body.get(key) == [] for key in ("input", "output"))  # its records follow
            if self._closed or not self.active or empty:
                self.forget(lines)
                return
            if name in self._names:
                self.count("repeated")
                self.forget(lines)
                return
            try:
                path = self._write(name, lines, self._stack_of(name))
            except Exception as error:
                self._note_failure("the .pkl file", error)
        if path is not None:
            self._on_write(path)

    def remember(self, name: str, stack: tuple[str, ...]) -> None:
        """Keep the stack of a forward, for its own lines and those of its backward."""
        with self._lock:
            self._stacks[name] = self._same.setdefault(stack, stack)

    def forget(self, lines: Iterable[Line]) -> None:
        """Release tensors that are not written."""
        with self._lock:
            self._take_snapshots()
            for line in lines:
                snapshot = self._waiting.pop(line.file or "", None)
                if snapshot is not None:
                    snapshot.release()

    def start_over(self) -> None:
        """The next call empties the file and its folder first; files of overflows are kept."""
        self._over = not self._plan.overflow

    def parent(self, name: str, parent: Any) -> None:
        """The format has no parents."""

    def count(self, kind: str, number: int = 1) -> None:
        self.counts[kind] = self.counts.get(kind, 0) + number

    def add_to_run(self, key: str, value: Any) -> None:
        """The format holds no facts about a run."""

    # -- files ---------------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Nothing to do: each call is written when it ends."""

    def move(self, folder: Path | str) -> None:
        """Rename the folder, when the rank becomes known. Raises OSError."""
        with self._lock:
            os.makedirs(os.path.dirname(folder), FOLDER_MODE, exist_ok=True)
            self.folder.rename(folder)
            self.folder = Path(folder)

    def close(self) -> None:
        with self._lock:
            if self._closed or os.getpid() != self._pid:
                return
            self._closed = True
            handle, self._handle = self._handle, -1
            if handle >= 0:
                os.close(handle)
            for kind, number in self.counts.items():
                LOG.info("%s: %s %d times", self._plan.stem, kind, number)

    @property
    def opened(self) -> bool:
        """Whether anything has been written."""
        return self._opened

    # -- inside --------------------------------------------------------------------------------------------------------

    def _take_snapshots(self) -> None:
        for snapshot in self._recorder.take_snapshots():
            if isinstance(snapshot, Snapshot):
                self._waiting[snapshot.name] = snapshot

    def _stack_of(self, name: str) -> tuple[str, ...] | None:
        """Stack of a call. A backward has the stack of its forward, as the engine's own does not name the call. The format has
        no gradients of parameters, so these get no stack line."""
        if not self._plan.stacks or parse(name).kind == "gradient":
            return None
        head, _, last = name.rpartition(".")
        call = name.replace(".backward.", ".forward.") if last.isdigit() else f"{head}.forward"
        return self._stacks.get(call, ())

    def _write(self, name: str, lines: list[Line], stack: tuple[str, ...] | None) -> Path | None:
        self._recorder.resolve()
        node = self._spelling.node(name)
        form, plan = self._plan.form, self._plan
        texts = [text for line in lines if (text := self._text(line, name))]
        if stack is not None:
            place = 0 if form.stack_first(plan.mode, overflow=plan.overflow) else len(texts)
            texts.insert(place, form.stack_line(node, stack))
        if not texts:
            return None
        path = self._prepare(node)
        self._write_arrays(path.with_name(without_suffix(path.name, PKL)), lines)
        self._names.add(name)
        _write_all(self._handle, "".join(texts).encode())
        return path

    def _text(self, line: Line, name: str) -> str:
        form, plan = self._plan.form, self._plan
        flag = OVERFLOW_FLAG if plan.overflow else plan.flag
        if any(name.startswith(f"{label}.") for label in self._spelling.dumped):
            flag = MODULE_FLAG
        if line.is_tensor:
            return form.tensor_line(line.name, line.record, flag)
        return form.number_line(line.name, line.record, flag)

    def _prepare(self, node: str) -> Path:
        """Open the .pkl file for the next call and return its path: one file for all calls, or one per overflow."""
        plan, stem = self._plan, self._plan.stem
        if plan.overflow:
            self.found += 1
            stem = plan.form.finding(node, self.found, stamp=time.strftime("%Y%m%d_%H%M%S", time.gmtime()))
        if not self._opened:
            self.folder = self._open_folder(() if plan.overflow else (f"{stem}{PKL}", stem))
            self._opened = True
        path = self.folder / f"{stem}{PKL}"
        if self._handle < 0 or plan.overflow:
            if self._handle >= 0:
                os.close(self._handle)
                self._handle = -1
            self._handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, FILE_MODE)
        if self._over:
            self._over = False
            self._empty(path)
        return path

    def _empty(self, path: Path) -> None:
        if os.fstat(self._handle).st_size:
            LOG.info("the switch is ON again: %s is emptied", path)
        os.ftruncate(self._handle, 0)
        shutil.rmtree(path.with_suffix(""), ignore_errors=True)
        self._names.clear()

    def _write_arrays(self, folder: Path, lines: list[Line]) -> None:
        waiting = [snapshot for line in lines if (snapshot := self._waiting.pop(line.file or "", None)) is not None]
        if waiting:
            folder.mkdir(mode=FOLDER_MODE, exist_ok=True)
        for snapshot in waiting:
            try:
                write_array(folder / snapshot.name, snapshot)
            except Exception as error:
                self._note_failure("a tensor's file", error)

    def _note_failure(self, what: str, error: BaseException) -> None:
        first = f"failed: {what}" not in self.counts
        self.count(f"failed: {what}")
        if first:
            LOG.warning("%s in %s could not be written and training goes on: %s", what, self.folder, error)


def _flat(value: Any) -> Iterator[Line]:
    if isinstance(value, Line):
        yield value
    elif isinstance(value, (list, Iterator)):
        for part in value:
            yield from _flat(part)


def _write_all(handle: int, data: bytes) -> None:
    while data:
        data = data[os.write(handle, data) :]


def write_array(path: Path, snapshot: Snapshot) -> None:
    """Write a snapshot as .npy and release it. Raises OSError."""
    try:
        snapshot.wait()
        array = as_array(snapshot.tensor())
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, FILE_MODE), "wb") as out:
            np.save(out, array, allow_pickle=False)
    finally:
        snapshot.release()


def as_array(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """The same numbers in a type that numpy has: bfloat16 and the 8-bit floats become float32, which holds all their numbers."""
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    if tensor.dtype is torch.complex32:
        tensor = tensor.to(torch.complex64)
    try:
        array: np.ndarray[Any, Any] = tensor.numpy()
    except TypeError:
        array = tensor.float().numpy()
    return array
