"""The folder that an archive is unpacked into, with everything that is counted and refused on the way."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from hashlib import blake2b
from typing import IO, Final

from dumpscope.errors import LimitError, Problem, full_disk
from dumpscope.readers.archives.entry_names import Folding
from dumpscope.readers.archives.limits import Limits
from dumpscope.texts import say

BLOCK: Final = 1 << 20
PROBLEM_LIMIT: Final = 200
IDLE_PER_FILE: Final = 4
_DRIVE: Final = re.compile(r"[A-Za-z]:")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


class Target:
    """The folder being filled, with its counters. Memory grows by some hundred bytes an entry, however long names are.

    names: which of them its file system takes for one
    """

    def __init__(self, folder: str, name: str, packed: int, limits: Limits, names: Folding) -> None:
        self.folder = folder
        self.name = name
        self.limits = limits
        self._names = names
        self.problems: list[Problem] = []
        self.files = 0
        self._refused = 0
        self._entries = 0
        self._idle = 0
        self._filled = 0
        self._bytes = 0
        self._linked = 0
        self._allowed = min(limits.bytes, max(limits.free, packed * limits.ratio))
        self._taken: dict[bytes, bool] = {}  # digest of the folded path -> whether it is a folder

    def count_entry(self, *, filled: bool) -> None:
        """Count an entry before it is unpacked; filled: it brings bytes."""
        self._count_name()
        self._filled += filled
        self._idle += not filled
        self.check_idle(self._idle, self._filled)

    def check_idle(self, idle: int, filled: int) -> None:
        """Raises LimitError for entries that cost time and bring nothing."""
        if idle > self.limits.idle + IDLE_PER_FILE * filled:
            raise LimitError(
                say("readers.holds_more_than_entries_without_content", idle=idle - 1),
                where=self.name,
                hint=say("readers.pack_dump_without_them"),
            )

    def check_entries(self, entries: int) -> None:
        if entries > self.limits.entries:
            raise LimitError(say("readers.holds_more_than_entries", entries=self.limits.entries), where=self.name)

    def count(self, size: int) -> None:
        """Count unpacked bytes, written or not."""
        self.foresee(size)
        self._bytes += size

    def foresee(self, size: int) -> None:
        """Raises LimitError where so many bytes more would be too many."""
        if self._bytes + size > self._allowed:
            if self._allowed < self.limits.bytes:
                detail = say("readers.unpacks_more_than_times_size", ratio=self.limits.ratio)
            else:
                detail = say("readers.unpacks_more_than_bytes", bytes=self.limits.bytes)
            raise LimitError(detail, where=self.name, hint=say("readers.unpack_yourself_name_folder"))

    def refuse(self, entry: str, kind: str, message: str) -> None:
        self._refused += 1
        if self._refused <= PROBLEM_LIMIT:
            shown = entry if len(entry) <= 200 else f"{entry[:197]}..."
            loc = f"{self.name}:{shown}" if entry else self.name
            self.problems.append(Problem(loc=loc.encode(errors="replace").decode(), kind=kind, message=message))

    def finish(self) -> list[Problem]:
        """What was refused, and how much more than is listed."""
        more = self._refused - PROBLEM_LIMIT
        if more > 0:
            message = say("readers.more_entries_refused_than_listed", more=more)
            return [*self.problems, Problem(loc=self.name, kind="more", message=message)]
        return self.problems

    def take(self, name: str, stream: IO[bytes], changed: float | None) -> None:
        """Write one file, or refuse it. Its bytes are counted where the stream is read."""
        parts = self._parts(name)
        if parts is None:
            return
        path = os.path.join(self.folder, *parts)
        try:
            handle = self._create(path)
        except OSError as error:
            self._refuse_unwritten(name, error)
            return
        with os.fdopen(handle, "wb") as out:
            while block := stream.read(BLOCK):
                out.write(block)
        if changed is not None and 0 <= changed < 2**33:
            os.utime(path, (changed, changed))
        self.files += 1

    def size_of(self, name: str) -> int | None:
        """Bytes of a file that was unpacked before under this name; None where there is none."""
        parts, reason = self._split(name)
        if reason is not None or self._taken.get(list(self._digests(parts))[-1]) is not False:
            return None
        try:
            return os.lstat(os.path.join(self.folder, *parts)).st_size
        except OSError:  # claimed, and then refused by the disk
            return None

    def take_link(self, name: str, first: str) -> None:
        """Give a file that was unpacked before (`size_of` tells its size) a second name. Its bytes are counted again, though
        they take no space."""
        source = os.path.join(self.folder, *self._split(first)[0])
        size = os.lstat(source).st_size
        self._linked += size
        if self._bytes + self._linked > self.limits.bytes:
            raise LimitError(
                say("readers.unpacks_more_than_bytes", bytes=self.limits.bytes),
                where=self.name,
                hint=say("readers.unpack_yourself_name_folder"),
            )
        parts = self._parts(name)
        if parts is None:
            return
        path = os.path.join(self.folder, *parts)
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            try:
                os.link(source, path, follow_symlinks=False)
            except OSError:  # no links here, or too many of one file
                self._copy(source, path, size)
        except OSError as error:
            self._refuse_unwritten(name, error)
            return
        self.files += 1

    def _copy(self, source: str, path: str, size: int) -> None:
        """Write a file again, with its bytes counted as those of any file."""
        self.count(size)
        handle = self._create(path)
        with open(source, "rb") as stream, os.fdopen(handle, "wb") as out:
            shutil.copyfileobj(stream, out, BLOCK)
        shutil.copystat(source, path, follow_symlinks=False)

    def _create(self, path: str) -> int:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)

    def _refuse_unwritten(self, name: str, error: OSError) -> None:
        """Refuse an entry that the disk does not take; a full disk ends the unpacking."""
        if full_disk(error) is not None:
            raise error
        self.refuse(name, "refused", say("readers.entry_cannot_written", reason=error.strerror))

    def _count_name(self) -> None:
        self._entries += 1
        self.check_entries(self._entries)

    def _parts(self, name: str) -> tuple[str, ...] | None:
        """Take the name of an entry; None where it is refused."""
        parts, reason = self._split(name)
        if reason is None and not self._claim(parts):
            reason = say("readers.clashes_entry_before", words=self._names.words)
        if reason is not None:
            self.refuse(name, "refused", say("readers.entry_not_unpacked", reason=reason))
            return None
        return parts

    def _split(self, name: str) -> tuple[tuple[str, ...], str | None]:
        """Parts of a path in the archive, and why it cannot be one below the folder."""
        plain = name.replace("\\", "/")
        reason = None
        if plain.startswith("/") or _DRIVE.match(plain):
            reason = say("readers.has_absolute_path")
        elif ".." in plain.split("/"):
            reason = say("readers.climbs_out_archive")
        elif _CONTROL.search(plain):
            reason = say("readers.has_control_characters_name")
        parts = tuple(part for part in plain.split("/") if part not in ("", "."))
        if reason is None:
            if not parts:
                reason = say("readers.has_no_name")
            elif len(parts) > self.limits.depth + 1:
                reason = say("readers.lies_deeper_than_folders", depth=self.limits.depth)
            elif any(len(part.encode(errors="surrogateescape")) > 255 for part in parts):
                reason = say("readers.has_name_more_than_255_bytes")
        return parts, reason

    def _claim(self, parts: tuple[str, ...]) -> bool:
        """Take the name of a file and of the folders above it, unless one of them is a file, or it is anything, already."""
        *above, own = self._digests(parts)
        if own in self._taken or any(self._taken.get(folder) is False for folder in above):
            return False
        self._taken[own] = False
        for folder in above:
            if folder not in self._taken:
                self._count_name()
                self._taken[folder] = True
        return True

    def _digests(self, parts: tuple[str, ...]) -> Iterator[bytes]:
        """One for the path of each folder, from the top, and one for the file."""
        whole = blake2b(digest_size=16)
        for part in parts:
            whole.update(self._names.key(part).encode(errors="surrogatepass") + b"/")
            yield whole.digest()
