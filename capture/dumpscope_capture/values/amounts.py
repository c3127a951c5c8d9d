"""How much a tensor dump takes: parameters whose files are left out, and the size of a step, counted without writing it."""

from __future__ import annotations

import shutil
import tempfile
import threading
from pathlib import Path
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from dumpscope_capture.values.dedup import file_key
from dumpscope_capture.values.recorder import Recorder
from dumpscope_capture.values.tensor_subclasses import unwrap


class FrozenParameters:
    """Parameters that do not require a gradient, and views of them: they get no file. Safe for threads.

    records, nbytes: records without a file in this step, and the bytes of the tensors, each counted once
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: set[tuple[int, tuple[int, ...]]] = set()
        self.records = 0
        self.nbytes = 0

    def leaves_out(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor is frozen; it is counted then."""
        owner = tensor if isinstance(tensor, torch.nn.Parameter) else tensor._base
        if owner is None or owner.requires_grad or not isinstance(owner, torch.nn.Parameter):
            return False
        key = (id(owner), tuple(tensor.shape))
        with self._lock:
            self.records += 1
            if key not in self._known:
                self._known.add(key)
                self.nbytes += tensor.numel() * tensor.element_size()
        return True

    def take(self) -> dict[str, int]:
        """Entry of run.json, empty where nothing was left out; the next step counts from 0."""
        with self._lock:
            found = {"records": self.records, "bytes": self.nbytes} if self.records else {}
            self._known.clear()
            self.records = self.nbytes = 0
        return found


class SizeCounter(Recorder):
    """Counts the bytes of the files that a step would write, and reads no value.

    Memory that is met again unchanged counts once, as its file would be linked. Equal content elsewhere is not noticed, so a step
    writes at most what is counted, and the headers of its files.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.nbytes = 0
        self.tensors = 0
        self._met: dict[Any, StorageWeakRef] = {}

    def _tensor(self, tensor: torch.Tensor, item: str) -> dict[str, Any]:
        if self.frozen is not None and self.frozen.leaves_out(tensor):
            return {}
        grad = tensor.requires_grad
        _, plain, _, absent = unwrap(tensor)
        if absent is None:
            self._count(plain if self._slices is None else self._slices.cut(plain), grad=grad)
        return {}

    def _count(self, tensor: torch.Tensor, *, grad: bool) -> None:
        try:
            storage = tensor.untyped_storage()
            version = -1 if tensor.is_inference() else tensor._version
        except (RuntimeError, NotImplementedError):  # sparse, nested: without one storage
            return
        key = (storage._cdata, tensor.storage_offset(), tensor.dtype, version, file_key(tensor, requires_grad=grad))
        with self._lock:
            known = self._met.get(key)
            if known is not None and not known.expired():  # type: ignore[no-untyped-call]
                return
            self._met[key] = StorageWeakRef(storage)  # type: ignore[no-untyped-call]
            self.tensors += 1
            self.nbytes += tensor.numel() * tensor.element_size()


class CountingSink:
    """Takes the nodes of a step that is only counted. Its folder is a temporary one, removed at the end."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="dumpscope-size-"))

    def add(
        self, name: str, body: Any, *, stack: tuple[str, ...] | None = None, parent: Any = None, linked: bool = True
    ) -> None:
        """Nothing is kept."""

    def parent(self, name: str, parent: Any) -> None:
        """Nothing is kept."""

    def count(self, kind: str, number: int = 1) -> None:
        """Nothing is kept."""

    def add_to_run(self, key: str, value: Any) -> None:
        """Nothing is kept."""

    def flush(self) -> None:
        """Nothing to bring to disk."""

    def move(self, folder: Path | str) -> None:
        """The folder is temporary."""

    def close(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
