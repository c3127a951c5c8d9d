"""Tensor files: each on disk when `put` returns, or written by one thread from a queue that is bounded in bytes.

A content that was written before, in this step or the one before, is linked: parameters and the state of an optimizer are not
written again at the beginning of the next step.
"""

from __future__ import annotations

import os
import queue
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final
from zlib import crc32

import torch

from dumpscope_capture.context import Unobserved
from dumpscope_capture.values.snapshots import FileLink, Snapshot
from dumpscope_capture.write.torch_file import TensorLayout, can_write, pack
from dumpscope_format.older_python import dataclass

if TYPE_CHECKING:
    from typing import TypeAlias

_LINKS_A_FILE: Final = 30_000  # ext4 allows 65000, other file systems fewer
_COMPARE: Final = 1 << 18


@dataclass(slots=True, kw_only=True)
class _KnownFile:
    """A written file: its name and its number of hard links."""

    name: str
    links: int


_Key: TypeAlias = "tuple[TensorLayout, int, int]"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFiles:
    """Files of a finished step. Each is read before it is linked, so users may change or remove it."""

    folder: Path
    known: dict[_Key, _KnownFile]


def _ignore(what: str, error: BaseException) -> None:
    """Error callback after `close`."""


class TensorFiles:
    """Writes snapshots into a folder.

    limit: bytes that may be queued for a thread before `put` blocks; None to write at once, in the calling thread
    on_error: called in the writing thread with "tensor_files" and an error; the file of that snapshot does not exist then
    earlier: files of the step before
    """

    def __init__(
        self,
        folder: Path,
        *,
        limit: int | None,
        on_error: Callable[[str, BaseException], None],
        earlier: StepFiles | None = None,
    ) -> None:
        self.folder = folder
        self._earlier = earlier
        self._limit = limit
        self._on_error = on_error
        self._queue: queue.SimpleQueue[Snapshot | FileLink | None] = queue.SimpleQueue()
        self._space = threading.Condition()
        self._bytes = 0
        self._open = 0
        self._thread: threading.Thread | None = None
        self._known: dict[_Key, _KnownFile] = {}
        self._made = False
        self._written = 0
        self._linked = 0
        self._size = 0

    def put(self, snapshot: Snapshot | FileLink) -> None:
        limit = self._limit
        if limit is None:
            with Unobserved():
                self._save(snapshot)
            return
        with self._space:
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="dumpscope-files", daemon=True)
                self._thread.start()
            while self._bytes > limit:
                self._space.wait()
            self._bytes += snapshot.nbytes
            self._open += 1
        self._queue.put(snapshot)

    def drain(self) -> None:
        """Wait until everything put so far is on disk."""
        with self._space:
            while self._open:
                self._space.wait()

    def close(self) -> None:
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            self._thread = None
        self._on_error = _ignore  # breaks a reference cycle with the owner

    def step_files(self) -> StepFiles:
        """Files for the next step to link to. Call `close` first."""
        return StepFiles(folder=self.folder, known=self._known)

    def counts(self) -> dict[str, int]:
        """Numbers of files written and linked, and the bytes written."""
        return {"written": self._written, "linked": self._linked, "bytes": self._size}

    def _work(self) -> None:
        while (snapshot := self._queue.get()) is not None:
            self._save(snapshot)
            with self._space:
                self._bytes -= snapshot.nbytes
                self._open -= 1
                self._space.notify_all()

    def _save(self, snapshot: Snapshot | FileLink) -> None:
        try:
            if isinstance(snapshot, FileLink):
                self._repeat(snapshot)
            else:
                self._write(snapshot)
        except Exception as error:
            self._on_error("tensor_files", error)
        if isinstance(snapshot, Snapshot):
            snapshot.release()

    def _write(self, snapshot: Snapshot) -> None:
        if not self._made:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._made = True
        data = snapshot.wait()
        if snapshot.whole is not None or not can_write(snapshot.dtype, data.nbytes):
            with _Replacing(self.folder / snapshot.name) as temporary:
                torch.save(snapshot.tensor(), temporary)
            self._written += 1
            self._size += (self.folder / snapshot.name).stat().st_size
            return
        check = crc32(data) if snapshot.check is None else snapshot.check
        may = snapshot.dtype.is_floating_point or snapshot.dtype.is_complex
        layout = TensorLayout(
            dtype=snapshot.dtype,
            shape=snapshot.shape,
            stride=snapshot.stride,
            requires_grad=snapshot.requires_grad and may,
        )
        key = (layout, data.nbytes, check)
        parts = pack(layout, data, check)
        if self._link(key, parts, snapshot.name):
            self._linked += 1
            return
        with _Replacing(self.folder / snapshot.name) as temporary:
            size = _write_parts(temporary, parts)
        self._known[key] = _KnownFile(name=snapshot.name, links=1)
        self._written += 1
        self._size += size

    def _repeat(self, link: FileLink) -> None:
        """Link a file to another name, or copy it where the file system allows no (more) links."""
        first, path = self.folder / link.first, self.folder / link.name
        with _Replacing(path) as temporary:
            try:
                os.link(first, temporary)
                self._linked += 1
            except FileNotFoundError:
                raise
            except OSError:
                shutil.copyfile(first, temporary)
                self._written += 1
                self._size += temporary.stat().st_size

    def _link(self, key: _Key, parts: list[bytes | memoryview], name: str) -> bool:
        """Link a written file that holds the same bytes. False where there is none or linking fails."""
        folder, known = self.folder, self._known.get(key)
        if known is None and self._earlier is not None:
            folder, known = self._earlier.folder, self._earlier.known.get(key)
        if known is None or known.links >= _LINKS_A_FILE or folder / known.name == self.folder / name:
            return False
        try:
            if not _holds(folder / known.name, parts):
                return False
            with _Replacing(self.folder / name) as temporary:
                os.link(folder / known.name, temporary)
        except OSError:
            return False
        if folder == self.folder:
            known.links += 1
        else:
            self._known[key] = _KnownFile(name=name, links=known.links + 1)
        return True


class _Replacing:
    """Gives a temporary name to write to. On exit the file is renamed, or removed after an exception."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.temporary = path.with_name(f".{os.getpid()}.part")

    def __enter__(self) -> Path:
        self.temporary.unlink(missing_ok=True)
        return self.temporary

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            os.replace(self.temporary, self.path)
        else:
            self.temporary.unlink(missing_ok=True)


def _write_parts(path: Path, parts: list[bytes | memoryview]) -> int:
    """Write a new file, mostly by one system call. Returns its size in bytes."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        size = sum(part.nbytes if isinstance(part, memoryview) else len(part) for part in parts)
        written = os.writev(handle, parts)
        if written < size:
            rest = memoryview(b"".join(parts))[written:]
            while rest:
                rest = rest[os.write(handle, rest) :]
        return size
    finally:
        os.close(handle)


def _holds(path: Path, parts: list[bytes | memoryview]) -> bool:
    """Whether a file consists of these parts. It is read in pieces into the same memory, as new memory is slow."""
    views = [memoryview(part) for part in parts]
    buffer = bytearray(min(max(view.nbytes for view in views), _COMPARE))
    window = memoryview(buffer)
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if os.fstat(handle).st_size != sum(view.nbytes for view in views):
            return False
        offset = 0
        for view in views:
            for place in range(0, view.nbytes, _COMPARE):
                part = view[place : place + _COMPARE]
                if os.preadv(handle, [buffer], offset + place) < part.nbytes or window[: part.nbytes] != part:
                    return False
            offset += view.nbytes
        return True
    finally:
        os.close(handle)
