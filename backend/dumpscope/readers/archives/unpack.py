"""Unpack a .zip or .tar of a dump, trusting nothing in it.

Entries are streamed and counted as they are written, so a false size in a header changes nothing. A refused entry is a problem
and the others are unpacked; a passed limit is a LimitError and leaves nothing behind.
"""

from __future__ import annotations

import lzma
import os
import shutil
import struct
import tarfile
import tempfile
import zipfile
import zlib
from contextlib import suppress
from typing import Final

from dumpscope.errors import ForeignError, FullDiskError, Problem, UnreadableError, full_disk
from dumpscope.readers.archives.entry_names import probe
from dumpscope.readers.archives.limits import DEFAULT, Limits
from dumpscope.readers.archives.tar_archive import COMPRESSED, unpack_tar
from dumpscope.readers.archives.target_folder import Target
from dumpscope.readers.archives.zip_archive import unpack_zip
from dumpscope.readers.file_type import refuse_compressed, refuse_cut
from dumpscope.readers.regular_file import open_regular
from dumpscope.texts import say

_DAMAGE: Final = (
    tarfile.TarError,
    zipfile.BadZipFile,
    lzma.LZMAError,
    zlib.error,
    struct.error,
    EOFError,
    ValueError,  # numbers that are none, and more, in extended headers
    OverflowError,
    NotImplementedError,
    RecursionError,  # headers about headers about headers
)


def kind_of(path: str) -> str | None:
    """Say "zip" or "tar" (plain, gzip, bzip2, xz) from the first bytes; None for anything else."""
    with open_regular(path) as stream:
        head = stream.read(512)
        if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
            return "zip"
        return "tar" if head.startswith(tuple(COMPRESSED)) or _is_tar(head) else None


def unpack(path: str, workdir: str, limits: Limits = DEFAULT) -> tuple[str, list[Problem]]:
    """Unpack into a new folder below `workdir`; answers the folder and what was refused.

    Raises LimitError for an archive past `limits`, UnreadableError where it is damaged from the start or holds no file.
    """
    kind = kind_of(path)
    if kind is None:
        raise UnreadableError(
            say("readers.no_archive_can_opened"), where=path, hint=say("readers.use_zip_tar_tar_gz_tar")
        )
    os.makedirs(workdir, exist_ok=True)
    folder = tempfile.mkdtemp(prefix="dump-", dir=workdir)
    target = Target(folder, os.path.basename(path), os.stat(path).st_size, limits, probe(folder))
    try:
        damage: str | None = None
        try:
            (unpack_zip if kind == "zip" else unpack_tar)(path, target)
        except _DAMAGE as error:
            damage = error.args[0] if error.args and isinstance(error.args[0], str) else str(error)  # keeps its phrase
            target.refuse("", "truncated", say("readers.archive_damaged_what_came_before_unpacked", error=damage))
        except OSError as error:
            if full_disk(error) is not None:
                raise FullDiskError(
                    say("readers.does_not_fit_disk"),
                    where=path,
                    hint=say("readers.free_space_name_another_data_folder"),
                ) from error
            damage = str(error)
            target.refuse("", "truncated", say("readers.archive_damaged_what_came_before_unpacked", error=error))
        if not target.files and damage is not None:
            raise _damaged(path, kind, damage)
        if not target.files:
            why = f": {target.problems[0].message}" if target.problems else ""
            raise UnreadableError(say("readers.nothing_could_unpacked", why=why), where=path)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return folder, target.finish()


def _damaged(path: str, kind: str, why: str) -> ForeignError:
    """The error for an archive of which nothing could be unpacked."""
    with open_regular(path) as stream:
        head = stream.read(6)
        stream.seek(0)
        opener = next((opener for magic, opener in COMPRESSED.items() if head.startswith(magic)), None)
        if opener is not None:
            with suppress(*_DAMAGE, OSError), opener(stream) as plain:
                if (start := plain.read(512)) and not _is_tar(start):
                    return refuse_compressed(path)
    return refuse_cut(path, kind, why)


def _is_tar(head: bytes) -> bool:
    return head[257:262] == b"ustar" or _old_tar(head)


def _old_tar(head: bytes) -> bool:
    """Whether 512 bytes are a tar header without the ustar mark: its checksum is right."""
    if len(head) < 512 or not head[:1].strip(b"\0"):
        return False
    try:
        wanted = int(head[148:156].strip(b"\0 ") or b"x", 8)
    except ValueError:
        return False
    return sum(head[:148]) + 8 * 32 + sum(head[156:]) == wanted
