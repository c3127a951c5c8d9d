"""Tensor files: each on disk when `put` returns, or written by one thread from a queue that is bounded in bytes.

A content that was written before, in this step or the one before, is linked: parameters and the state of an optimizer are not
written again at the beginning of the next step.
"""

from __future__ import annotations

import contextlib
import os
import queue
import shutil
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import torch

from dumpscope_capture.context import Unobserved
from dumpscope_capture.values.hashing import crc
from dumpscope_capture.values.snapshots import FileLink, Snapshot
from dumpscope_capture.write.torch_file import TensorLayout, can_write, pack
from dumpscope_format.older_python import dataclass

if TYPE_CHECKING:
    from typing import TypeAlias

_LINKS_A_FILE: Final = 30_000  # ext4 allows 65000, other file systems fewer
_COMPARE: Final = 1 << 18
_SMALL: Final = 1 << 12
_KEPT_BYTES: Final = 16 << 20
"""Bytes of small contents that are kept in memory, so that an equal one is recognised without reading its file."""


@dataclass(slots=True, kw_only=True)
class _KnownFile:
    """A written file: its name, its number of hard links, and its tensor's bytes where they are kept in memory."""

    name: str
    links: int
    data: bytes | None = None


_Key: TypeAlias = "tuple[TensorLayout, int, int]"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFiles:
    """Files of a finished step. Each is read before it is linked, so users may change or remove it."""

    folder: str
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
        folder: str | os.PathLike[str],
        *,
        limit: int | None,
        on_error: Callable[[str, BaseException], None],
        earlier: StepFiles | None = None,
    ) -> None:
        self.folder = os.fspath(folder)
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
        self._kept = 0
        self._buffer: bytearray | None = None

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
        for known in self._known.values():
            known.data = None  # the user may change a file from now on
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
            os.makedirs(self.folder, exist_ok=True)
            self._made = True
        data = snapshot.wait()
        path = os.path.join(self.folder, snapshot.name)
        if snapshot.whole is not None or not can_write(snapshot.dtype, data.nbytes):
            with _Replacing(path) as temporary:
                torch.save(snapshot.tensor(), temporary)
            self._written += 1
            self._size += os.stat(path).st_size
            return
        check = crc(data) if snapshot.check is None else snapshot.check
        may = snapshot.dtype.is_floating_point or snapshot.dtype.is_complex
        layout = TensorLayout(snapshot.dtype, snapshot.shape, snapshot.stride, snapshot.requires_grad and may)
        key = (layout, data.nbytes, check)
        if self._link(key, data, snapshot.name):
            self._linked += 1
            return
        with _Replacing(path) as temporary:
            size = _write_parts(temporary, pack(layout, data, check))
        known = self._known[key] = _KnownFile(name=snapshot.name, links=1)
        if data.nbytes <= _SMALL and self._kept <= _KEPT_BYTES:
            known.data = bytes(data)
            self._kept += data.nbytes
        self._written += 1
        self._size += size

    def _repeat(self, link: FileLink) -> None:
        """Link a file to another name, or copy it where the file system allows no (more) links."""
        first, path = os.path.join(self.folder, link.first), os.path.join(self.folder, link.name)
        try:
            _link_to(first, path)
            self._linked += 1
        except FileNotFoundError:
            raise
        except OSError:
            with _Replacing(path) as temporary:
                shutil.copyfile(first, temporary)
            self._written += 1
            self._size += os.stat(path).st_size

    def _link(self, key: _Key, data: memoryview, name: str) -> bool:
        """Link a written file that holds the same bytes. False where there is none or linking fails."""
        folder, known = self.folder, self._known.get(key)
        if known is None and self._earlier is not None:
            folder, known = self._earlier.folder, self._earlier.known.get(key)
        if known is None or known.links >= _LINKS_A_FILE:
            return False
        first, path = os.path.join(folder, known.name), os.path.join(self.folder, name)
        if first == path:
            return False
        try:
            if known.data is None:
                same = self._holds(first, pack(key[0], data, key[2]))
            else:
                same = known.data == bytes(data)
            if not same:
                return False
            _link_to(first, path)
        except OSError:
            return False
        if folder == self.folder:
            known.links += 1
        else:
            self._known[key] = _KnownFile(name=name, links=known.links + 1)
        return True

    def _holds(self, path: str, parts: list[bytes | memoryview]) -> bool:
        """Whether a file consists of these parts. It is read in pieces into the same memory, as new memory is slow."""
        buffer = self._buffer
        if buffer is None:
            buffer = self._buffer = bytearray(_COMPARE)
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if os.fstat(handle).st_size != _size_of(parts):
                return False
            offset = 0
            for part in parts:
                view = memoryview(part)
                for place in range(0, view.nbytes, _COMPARE):
                    piece = view[place : place + _COMPARE]
                    if os.preadv(handle, [buffer], offset + place) < piece.nbytes:
                        return False
                    # two memory views are compared byte by byte, a bytearray is not
                    if (buffer if piece.nbytes == _COMPARE else buffer[: piece.nbytes]) != piece:
                        return False
                offset += view.nbytes
            return True
        finally:
            os.close(handle)


class _Replacing:
    """Gives a temporary name to write to. On exit the file is renamed, or removed after an exception."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.temporary = os.path.join(os.path.dirname(path), f".{os.getpid()}.part")

    def __enter__(self) -> str:
        self._remove()
        return self.temporary

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            os.replace(self.temporary, self.path)
        else:
            self._remove()

    def _remove(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.temporary)


def _link_to(first: str, path: str) -> None:
    """Give a file another name, which another file may have so far."""
    try:
        os.link(first, path)
    except FileExistsError:
        if not os.path.samefile(first, path):  # renaming a file to another of its names does nothing
            with _Replacing(path) as temporary:
                os.link(first, temporary)


def _size_of(parts: list[bytes | memoryview]) -> int:
    return sum(part.nbytes if isinstance(part, memoryview) else len(part) for part in parts)


def _write_parts(path: str, parts: list[bytes | memoryview]) -> int:
    """Write a new file, mostly by one system call. Returns its size in bytes."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        size = _size_of(parts)
        written = os.writev(handle, parts)
        if written < size:
            rest = memoryview(b"".join(parts))[written:]
            while rest:
                rest = rest[os.write(handle, rest) :]
        return size
    finally:
        os.close(handle)
