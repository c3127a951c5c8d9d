"""Tensor files, written by one thread from a queue that is bounded in bytes; a content that is there already is linked."""

from __future__ import annotations

import hashlib
import os
import queue
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import torch

from dumpscope_capture import hashing
from dumpscope_capture.snapshots import Snapshot

_LINKS_A_FILE: Final = 30_000  # ext4 allows 65000, other file systems fewer


class TensorFiles:
    """Writes snapshots into a folder. `put` waits while more than `limit` bytes are queued.

    failed: called in the writing thread with "tensor_files" and an error; what it was about is left out
    """

    def __init__(self, folder: Path, *, limit: int, failed: Callable[[str, BaseException], None]) -> None:
        self.folder = folder
        self._limit = limit
        self._failed = failed
        self._queue: queue.SimpleQueue[Snapshot | None] = queue.SimpleQueue()
        self._space = threading.Condition()
        self._bytes = 0
        self._open = 0
        self._thread: threading.Thread | None = None
        self._first: dict[tuple[Any, ...], tuple[str, int]] = {}
        self._written = 0
        self._linked = 0
        self._size = 0

    def put(self, snapshot: Snapshot) -> None:
        with self._space:
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="dumpscope-files", daemon=True)
                self._thread.start()
            while self._bytes > self._limit:
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

    def told(self) -> dict[str, int]:
        """How many files were written and linked, and the bytes of those written."""
        return {"written": self._written, "linked": self._linked, "bytes": self._size}

    def _work(self) -> None:
        while (snapshot := self._queue.get()) is not None:
            try:
                self._write(snapshot)
            except Exception as error:
                self._failed("tensor_files", error)
            with self._space:
                self._bytes -= snapshot.nbytes
                self._open -= 1
                self._space.notify_all()

    def _write(self, snapshot: Snapshot) -> None:
        tensor = snapshot.wait()
        path = self.folder / snapshot.name
        key = (tensor.dtype, tuple(tensor.shape), snapshot.requires_grad, tensor.stride(), _digest(tensor))
        known = self._first.get(key)
        if known is not None and known[1] < _LINKS_A_FILE and self._link(known[0], path):
            self._first[key] = (known[0], known[1] + 1)
            self._linked += 1
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        temporary = self.folder / f".{os.getpid()}.part"
        try:
            torch.save(tensor.requires_grad_(snapshot.requires_grad), temporary)
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        self._first[key] = (snapshot.name, 1)
        self._written += 1
        self._size += path.stat().st_size

    def _link(self, name: str, path: Path) -> bool:
        """Give a written file a second name; False where the file system cannot."""
        path.unlink(missing_ok=True)
        try:
            os.link(self.folder / name, path)
        except OSError:
            return False
        return True


def _digest(tensor: torch.Tensor) -> bytes:
    """A digest no two contents share."""
    return hashlib.sha1(hashing.raw(tensor), usedforsecurity=False).digest()
