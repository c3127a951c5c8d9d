"""Writes the folder of one rank and step: records to the journal at once, JSON files at the end, tensor files by a thread.

    add() -> journal (survives a kill)              close() -> dump.json, stack.json, construct.json, run.json; no journal
    snapshots -> dump_tensor_data/*.pt before the record (async_dump: a bounded queue and one thread); each content is written
    once, then linked

Nothing here raises into the training program: with a full disk or a lost folder records are lost. The log and run.json say so.
"""

from __future__ import annotations

import json
import logging
import os
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, Protocol

from dumpscope_capture.values.recorder import Recorder
from dumpscope_capture.write.source_files import SourceFiles
from dumpscope_capture.write.tensor_files import StepFiles, TensorFiles
from dumpscope_format.journal import Writer
from dumpscope_format.paths import CONSTRUCT_JSON, DEBUG_JSON, DUMP_JSON, RUN_JSON, STACK_JSON, TENSOR_FOLDER
from dumpscope_format.rendering import render

CHUNK: Final = 4096
"""Largest number of tensors whose statistics wait on a device."""

CHUNK_SECONDS: Final = 2.0
"""Longest time they wait. A kill loses at most this much."""

ASYNC_QUEUE_BYTES: Final = 4 << 30

log = logging.getLogger("dumpscope")


class Sink(Protocol):
    """Takes the finished nodes of one rank and step. `StepSink` documents the methods."""

    folder: Path

    def add(
        self, name: str, body: Any, *, stack: tuple[str, ...] | None = None, parent: Any = None, linked: bool = True
    ) -> None: ...

    def parent(self, name: str, parent: Any) -> None: ...

    def count(self, kind: str, number: int = 1) -> None: ...

    def add_to_run(self, key: str, value: Any) -> None: ...

    def flush(self) -> None: ...

    def move(self, folder: Path | str) -> None: ...

    def close(self) -> None: ...


class _Node(NamedTuple):
    name: str
    body: Any
    stack: tuple[str, ...] | None
    parent: Any
    linked: bool


class StepSink:
    """Writes one rank of one step. Safe for threads; no method raises for an error of the disk.

    folder: made if absent; header: task, level, framework (`dump_data_dir` is added)
    recorder: makes the records; its snapshots are written here
    async_dump: let up to 4 GiB of tensors wait in memory for a thread, instead of writing them before their node
    extra_info: write stack.json and construct.json; construct.json is `{}` at level L1
    run: entries of run.json besides the counts
    earlier: tensor files of the step before; a tensor with the same content is linked to its file
    sources: keeps the program's files that call stacks name; None: they are not kept
    """

    def __init__(
        self,
        folder: Path | str,
        header: Mapping[str, Any],
        *,
        recorder: Recorder,
        async_dump: bool = False,
        extra_info: bool = True,
        run: Mapping[str, Any] | None = None,
        earlier: StepFiles | None = None,
        sources: SourceFiles | None = None,
    ) -> None:
        self.folder = Path(folder)
        self.recorder = recorder
        self.counts: dict[str, int] = {}
        self._header = dict(header)
        self._debug = header.get("level") == "debug"
        self._extra_info = extra_info and not self._debug
        self._links = self._extra_info and header.get("level") != "L1"
        self._run = dict(run or {})
        self._sources = sources if self._extra_info else None
        self._lock = threading.RLock()
        self._counting = threading.Lock()
        self._waiting: list[_Node] = []
        self._closed = False
        self._pid = os.getpid()
        self._journal: Writer | None = None
        self._files = TensorFiles(
            self.folder / TENSOR_FOLDER,
            limit=ASYNC_QUEUE_BYTES if async_dump else None,
            on_error=self._note_failure,
            earlier=earlier,
        )
        self._attempt("journal", self._open)

    # -- records -------------------------------------------------------------------------------------------------------

    def add(
        self, name: str, body: Any, *, stack: tuple[str, ...] | None = None, parent: Any = None, linked: bool = True
    ) -> None:
        """Add a finished node. dump.json keeps the order of calls; a name given again replaces its record.

        parent: name of the enclosing node, None at the top, or [name, micro step]; linked: construct.json names it
        """
        if self._foreign:
            return
        with self._lock:
            if self._closed:
                self.count("late")
                return
            recorder = self.recorder
            for snapshot in recorder.take_snapshots():
                self._files.put(snapshot)
            node = _Node(name, body, stack, parent, linked and self._links)
            if not recorder.pending and not self._waiting:
                self._write(node)
                return
            self._waiting.append(node)
            since = recorder.chunk.since
            if (
                len(recorder.chunk) >= CHUNK
                or recorder.full
                or (since is not None and time.monotonic() - since > CHUNK_SECONDS)
            ):
                self._attempt("statistics", recorder.resolve)
            if not recorder.pending:
                self._write_waiting()

    def parent(self, name: str, parent: Any) -> None:
        """Write a node's parent to construct.json, with or without a record."""
        if self._foreign:
            return
        with self._lock:
            if self._links and not self._closed and self._journal is not None:
                journal = self._journal
                self._attempt("journal", lambda: journal.link(name, parent))

    def count(self, kind: str, number: int = 1) -> None:
        """Count something for run.json: hook errors, refused values, lost records."""
        with self._counting:  # not `_lock`: the writing thread counts while close() waits for it
            self.counts[kind] = self.counts.get(kind, 0) + number

    def add_to_run(self, key: str, value: Any) -> None:
        """Set an entry of run.json."""
        self._run[key] = value

    @property
    def tensor_bytes(self) -> int:
        """Bytes of the tensor files written so far; links take none."""
        return self._files.counts()["bytes"]

    @property
    def is_empty(self) -> bool:
        """Whether no node was recorded so far."""
        return self._journal is not None and not self._journal.contents.places

    def step_files(self) -> StepFiles:
        """The tensor files of this step, for the sink of the next one. Call `close` first."""
        return self._files.step_files()

    # -- files ---------------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Bring everything to disk. The sink stays open: later records are added to the same files."""
        if self._foreign:
            return
        with self._lock:
            if not self._closed:
                self._complete()
                journal = self._journal
                if journal is not None and not journal.contents.flushed and self._attempt("json", self._write_json):
                    self._attempt("journal", journal.flushed)

    def move(self, folder: Path | str) -> None:
        """Rename the folder: proc123 becomes rank0. If that fails the old name stays."""
        if self._foreign:
            return
        with self._lock:
            self._files.drain()
            if self._attempt("move", lambda: self.folder.rename(folder)):
                self.folder = Path(folder)
                self._files.folder = str(self.folder / TENSOR_FOLDER)
                if self._sources is not None:
                    self._sources.moved(self.folder)
                if self._journal is not None:
                    self._journal.path = os.path.join(self.folder, os.path.basename(self._journal.path))
                    journal = self._journal
                    self._attempt("journal", lambda: journal.head(self._head()))

    def close(self) -> None:
        """Write the JSON files and remove the journal. If that fails the journal stays, and `dumpscope` reads it."""
        if self._foreign:
            return
        with self._lock:
            if self._closed:
                return
            self._complete()
            self._closed = True
            self._files.close()
            journal = self._journal
            if journal is None:
                return
            whole = journal.contents.flushed or self._attempt("json", self._write_json)
            self._attempt("run", lambda: self._write_run(ended="closed"))
            self._attempt("journal", lambda: journal.close(remove=whole))

    @property
    def _foreign(self) -> bool:
        """Whether this is a forked child: the files are its parent's, and the writing thread was not forked with it."""
        return os.getpid() != self._pid

    # -- inside --------------------------------------------------------------------------------------------------------

    def _open(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._journal = Writer(self.folder, self._head())
        if self._sources is not None:
            self._sources.begin(self.folder)
        self._attempt("run", lambda: self._write_run(ended=None))  # so that it survives a kill

    def _head(self) -> dict[str, Any]:
        head = {key: self._header.get(key) for key in ("task", "level", "framework")}
        head["framework"] = head["framework"] or "pytorch"
        head["dump_data_dir"] = self._header.get("dump_data_dir") or (
            str((self.folder / TENSOR_FOLDER).absolute()) if self.recorder.writes_files else None
        )
        return head

    def _complete(self) -> None:
        self._attempt("statistics", self.recorder.resolve)
        for snapshot in self.recorder.take_snapshots():
            self._files.put(snapshot)
        self._write_waiting()
        self._files.drain()

    def _write_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        for node in waiting:
            self._write(node)

    def _write(self, node: _Node) -> None:
        if self._journal is None:
            self.count("lost_records")
            return
        stacks = self._journal.contents.stacks
        known = len(stacks)
        try:
            self._journal.node(node.name, node.body, stack=node.stack, linked=node.linked, parent=node.parent)
        except Exception as error:
            self._note_failure("journal", error)
            self.count("lost_records")
        if self._sources is not None and node.stack is not None and len(stacks) > known:
            self._keep_sources(self._sources, node.stack)

    def _keep_sources(self, sources: SourceFiles, stack: tuple[str, ...]) -> None:
        try:
            sources.add(stack)
        except Exception as error:  # a loss of the program's text is none of the record
            log.debug("dumpscope: the source of a call stack was not kept: %s", error)

    def _write_json(self) -> None:
        assert self._journal is not None
        contents, handle = self._journal.contents, self._journal.handle
        name = DEBUG_JSON if self._debug else DUMP_JSON
        _replace(self.folder / name, lambda out: contents.write_dump(out, handle))
        if self._extra_info:
            _replace(self.folder / STACK_JSON, contents.write_stack)
            _replace(self.folder / CONSTRUCT_JSON, contents.write_construct)

    def _write_run(self, *, ended: str | None) -> None:
        with self._counting:
            document = {**self._run, "ended": ended, "counts": dict(self.counts), "tensor_files": self._files.counts()}
        _replace(
            self.folder / RUN_JSON,
            lambda out: _write_text(out, render(json.loads(json.dumps(document, default=str)), 0)),
        )

    def _attempt(self, what: str, act: Callable[[], Any]) -> bool:
        """Call `act`. Failures are counted, and the first of each kind is logged. Returns whether it succeeded."""
        try:
            act()
        except Exception as error:
            self._note_failure(what, error)
            return False
        return True

    def _note_failure(self, what: str, error: BaseException) -> None:
        first = f"failed_{what}" not in self.counts
        self.count(f"failed_{what}")
        if first:
            log.warning("dumpscope: %s of %s failed and training goes on: %s", what, self.folder, error)


def _write_text(out: BinaryIO, text: str) -> None:
    out.write(text.encode("ascii"))


def _replace(path: Path, write: Callable[[BinaryIO], None]) -> None:
    """Write a file whole or not at all."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb", buffering=1 << 20) as out:
            write(out)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
