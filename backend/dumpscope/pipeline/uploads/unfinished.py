"""Uploads that are not complete yet. What has arrived lies on disk, so that they go on after a lost connection or a restart.

ID/upload.json     what was announced, and the dump that it became; its time is that of the last request
ID/files/PATH      files that are whole
ID/parts/KEY       the beginning of a file that is sent in pieces; KEY.json says which one
ID/refused.jsonl   files that were left out, and why
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO, Final

from dumpscope.errors import ConflictError, FullDiskError, LimitError, NotFoundError, Problem, UsageError, full_disk
from dumpscope.pipeline.tasks.cleanup import hold_folder, is_folder_held, remove_folder
from dumpscope.pipeline.uploads.names import Names
from dumpscope.readers.archives.entry_names import probe
from dumpscope.texts import say

_BATCH: Final = "batch-"
"""Beginning of the name of a small file that is on its way; nothing goes on from it."""


@dataclass(slots=True)
class Piece:
    """A file that is sent in pieces: its whole size, and how many bytes of it are there."""

    size: int
    have: int


class Unfinished:
    """One upload, for any thread. files: whole files with their sizes; bytes: those that are there, beginnings included"""

    def __init__(self, folder: Path) -> None:
        about = json.loads((folder / "upload.json").read_text("utf-8"))
        self.folder = folder
        self.name: str = about["name"]
        self.announced_files: int = about["files"]
        self.announced_bytes: int = about["bytes"]
        self.dump: str | None = about["dump"]
        self.files: dict[str, int] = {}
        self.pieces: dict[str, Piece] = {}
        self.problems: list[Problem] = []
        self.bytes = 0
        self.lock = threading.RLock()
        self._names = Names(probe(folder))
        self._load()

    @property
    def touched(self) -> float:
        """Time of the last request, in seconds since the epoch."""
        return (self.folder / "upload.json").stat().st_mtime

    def refusal(self, name: str, *, once: bool = False) -> str | None:
        """Why a file of this name is left out. The same name may come again unless it is sent `once`."""
        with self.lock:
            return None if not once and self._names.taken(name) else self._names.claim(name)

    def batch(self, *, once: bool = False) -> Batch:
        """Where a batch of small files is written. once: a name that comes again is another file of that name"""
        return Batch(self, secrets.token_hex(6), once=once)

    def take(self, source: Path, name: str) -> None:
        """A small file is whole. One that was there already stays; another size under its name is refused."""
        size = source.stat().st_size
        with self.lock:
            self._open()
            there = self.files.get(name)
            if there is None:
                self._drop_piece(name)
                self._check_announced(name, size)
                self.bytes += size
                self._keep(source, name, size)
            elif there != size:
                self.refuse(name, say("pipeline.sent_before_bytes_now", there=there, size=size))

    def refuse(self, name: str, reason: str) -> None:
        """Note a file that is left out; once, however often it comes."""
        problem = Problem(loc=name[:500], kind="refused", message=say("api.file_left_out", reason=reason))
        with self.lock:
            if problem in self.problems:
                return
            self.problems.append(problem)
            with open(self.folder / "refused.jsonl", "a", encoding="utf-8") as out:
                out.write(json.dumps(asdict(problem)) + "\n")

    def write(self, name: str, size: int, at: int, data: bytes) -> None:
        """Bytes of a file of `size` bytes from offset `at`, which is at most what is there. Bytes may come again.

        Raises ConflictError past what is there or where the file was announced with another size.
        """
        with self.lock, report_full_disk():
            self._open()
            there = self.files.get(name)
            if there is not None:
                if there != size:
                    raise ConflictError(say("pipeline.file_there_bytes", there=there), where=name)
                return
            piece = self.pieces.get(name) or self._begin_piece(name, size)
            if piece.size != size:
                raise ConflictError(say("pipeline.file_begun_bytes", size=piece.size), where=name)
            if at > piece.have:
                raise ConflictError(
                    say("pipeline.only_bytes_there", have=piece.have), where=name, hint=say("pipeline.go_from_there")
                )
            if at + len(data) > size:
                raise UsageError(say("pipeline.more_than_bytes_arrive", size=size), where=name)
            new = max(0, at + len(data) - piece.have)
            self._check_announced(name, new)
            path = self._part(name)
            with open(path, "r+b") as out:
                out.seek(at)
                out.write(data)
            piece.have += new
            self.bytes += new
            if piece.have == size:
                self._keep(path, name, size)
                del self.pieces[name]
                path.with_suffix(".json").unlink()

    def rewind(self, name: str, at: int) -> None:
        """Forget the bytes of an incomplete file from offset `at` on."""
        with self.lock:
            piece = self.pieces.get(name)
            if piece is not None and piece.have > at:
                self.bytes -= piece.have - at
                piece.have = at
                os.truncate(self._part(name), at)

    def finish(self, dump: str, target: Path) -> list[str]:
        """Move the files to `target`, as those of a dump; their names. `check` comes first."""
        with self.lock:
            self.dump = dump
            self._save()
            (self.folder / "files").rename(target)
            shutil.rmtree(self.folder / "parts", ignore_errors=True)
            names = sorted(self.files)
            self.files, self.bytes = {}, 0
            return names

    def check(self) -> None:
        """Raises ConflictError where anything that was announced is not there."""
        with self.lock:
            count = len(self.files) + len(self.problems)
            short = not self.problems and self.bytes != self.announced_bytes
            if self.pieces or count != self.announced_files or short:
                raise ConflictError(
                    say(
                        "pipeline.upload_not_complete_files_bytes_there",
                        count=count,
                        announced_files=self.announced_files,
                        bytes=self.bytes,
                        announced_bytes=self.announced_bytes,
                    ),
                    hint=say("pipeline.send_rest_then_finish_again"),
                )

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Keep it from expiring during a request, and for its time afterwards."""
        try:
            with hold_folder(self.folder):
                os.utime(self.folder / "upload.json")
                yield
        except FileNotFoundError as error:
            raise NotFoundError(say("pipeline.upload_gone"), hint=say("pipeline.begin_again")) from error

    def _load(self) -> None:
        root = self.folder / "files"
        for folder, _folders, names in os.walk(root):
            for name in names:
                path = Path(folder, name)
                self.files[path.relative_to(root).as_posix()] = path.stat().st_size
        for path in (self.folder / "parts").glob("*"):
            if path.suffix == ".json":
                with suppress(FileNotFoundError, ValueError, KeyError):
                    about = json.loads(path.read_text("utf-8"))
                    have = path.with_suffix("").stat().st_size
                    self.pieces[about["path"]] = Piece(about["size"], have)
            elif path.name.startswith(_BATCH) and not is_folder_held(self.folder):
                path.unlink()
        with suppress(FileNotFoundError), open(self.folder / "refused.jsonl", encoding="utf-8") as lines:
            self.problems = [Problem(**json.loads(line)) for line in lines if line.endswith("\n")]
        for name in (*self.files, *self.pieces):
            self._names.claim(name)
        self.bytes = sum(self.files.values()) + sum(piece.have for piece in self.pieces.values())

    def _save(self) -> None:
        about = {
            "name": self.name,
            "files": self.announced_files,
            "bytes": self.announced_bytes,
            "dump": self.dump,
        }
        write_whole(self.folder / "upload.json", json.dumps(about))

    def _open(self) -> None:
        if self.dump is not None:
            raise ConflictError(say("pipeline.upload_finished"))

    def _check_announced(self, name: str, size: int) -> None:
        new = name not in self.files and name not in self.pieces
        if new and len(self.files) + len(self.pieces) + len(self.problems) >= self.announced_files:
            raise LimitError(say("pipeline.more_than_files_announced_arrive", announced_files=self.announced_files))
        if self.bytes + size > self.announced_bytes:
            raise LimitError(say("pipeline.more_than_bytes_announced_arrive", announced_bytes=self.announced_bytes))

    def _begin_piece(self, name: str, size: int) -> Piece:
        self._check_announced(name, size)
        path = self._part(name)
        path.touch()
        write_whole(path.with_suffix(".json"), json.dumps({"path": name, "size": size}))
        self.pieces[name] = Piece(size, 0)
        return self.pieces[name]

    def _drop_piece(self, name: str) -> None:
        piece = self.pieces.pop(name, None)
        if piece is not None:
            self.bytes -= piece.have
            path = self._part(name)
            path.with_suffix(".json").unlink(missing_ok=True)
            path.unlink(missing_ok=True)

    def _keep(self, source: Path, name: str, size: int) -> None:
        target = self.folder.joinpath("files", *name.split("/"))
        target.parent.mkdir(parents=True, exist_ok=True)
        source.rename(target)
        self.files[name] = size

    def _part(self, name: str) -> Path:
        return self.folder / "parts" / hashlib.sha256(name.encode()).hexdigest()[:40]


class Batch:
    """Small files of one request: each is written aside, and is the upload's once it is whole."""

    def __init__(self, upload: Unfinished, token: str, *, once: bool) -> None:
        self._upload = upload
        self._once = once
        self._path = upload.folder / "parts" / (_BATCH + token)

    def refusal(self, name: str) -> str | None:
        return self._upload.refusal(name, once=self._once)

    def refuse(self, name: str, reason: str) -> None:
        self._upload.refuse(name, reason)

    def create(self, name: str) -> BinaryIO:
        return open(self._path, "wb")

    def complete(self, name: str) -> None:
        self._upload.take(self._path, name)

    def close(self) -> None:
        """Remove what was not completed."""
        self._path.unlink(missing_ok=True)


class UnfinishedUploads:
    """All of them, below one folder; `seconds`: how long one is kept after its last request."""

    def __init__(self, folder: Path, seconds: float) -> None:
        self.folder = folder
        self.seconds = seconds
        self._open: dict[str, Unfinished] = {}
        self._lock = threading.Lock()

    def begin(self, upload_id: str, *, name: str, files: int, bytes: int) -> Unfinished:
        """Begin an upload, or find the one that was begun by this id; raises ConflictError where that was another."""
        with self._lock:
            place = self.folder / upload_id
            if not place.exists():
                self.folder.mkdir(parents=True, exist_ok=True)
                made = self.folder / f".gone-{secrets.token_hex(6)}"
                _make_folder(made, name=name, files=files, bytes=bytes)
                made.rename(place)
            found = self._find(upload_id)
        if (found.announced_files, found.announced_bytes) != (files, bytes):
            raise ConflictError(
                say(
                    "pipeline.upload_begun_files_bytes",
                    announced_files=found.announced_files,
                    announced_bytes=found.announced_bytes,
                ),
                hint=say("pipeline.begin_another_one_break_one_off"),
            )
        return found

    def get(self, upload_id: str) -> Unfinished:
        """Raises NotFoundError."""
        with self._lock:
            return self._find(upload_id)

    def look(self, upload_id: str) -> Unfinished | None:
        """The upload, if there is one."""
        with suppress(NotFoundError):
            return self.get(upload_id)
        return None

    def remove(self, upload_id: str) -> None:
        """Break it off; nothing stays. Raises NotFoundError."""
        with self._lock:
            found = self._find(upload_id)
        with found.lock:
            remove_folder(found.folder)

    def expire(self) -> None:
        """Remove expired uploads and remains of interrupted removals."""
        oldest = time.time() - self.seconds
        for place in self.folder.glob("*") if self.folder.exists() else ():
            with self._lock, suppress(FileNotFoundError):
                about = place / "upload.json"
                dated = about if about.exists() else place
                if dated.stat().st_mtime < oldest and not is_folder_held(place):
                    self._open.pop(place.name, None)
                    remove_folder(place)

    def _find(self, upload_id: str) -> Unfinished:
        found = self._open.get(upload_id)
        if found is None or not found.folder.exists():
            self._open.pop(upload_id, None)
            try:
                found = Unfinished(self.folder / upload_id)
            except (FileNotFoundError, ValueError, KeyError) as error:
                raise NotFoundError(
                    say("pipeline.no_upload_under_way", upload_id=f"{upload_id!r}"), hint=say("pipeline.begin_again")
                ) from error
            self._open[upload_id] = found
        return found


def begin_once(folder: Path, *, files: int, bytes: int) -> Unfinished:
    """An upload that comes in one request, of at most so many files and bytes, somewhere below `folder`.

    Its folder is named as one that is being removed: the next start of a server removes what a killed one left of it.
    """
    place = folder / f".gone-{secrets.token_hex(6)}"
    _make_folder(place, name="", files=files, bytes=bytes)
    return Unfinished(place)


def _make_folder(place: Path, *, name: str, files: int, bytes: int) -> None:
    for part in ("files", "parts"):
        (place / part).mkdir(parents=True)
    about = {"name": name, "files": files, "bytes": bytes, "dump": None}
    write_whole(place / "upload.json", json.dumps(about))


def write_whole(path: Path, text: str) -> None:
    """Write a small file so that a crash leaves the old one or the new one."""
    made = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    made.write_text(text, "utf-8")
    made.replace(path)


@contextmanager
def report_full_disk() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if full_disk(error) is None:
            raise
        hint = say("pipeline.make_room_upload_goes_where")
        raise FullDiskError(say("error.full_disk"), hint=hint) from error
