"""Temporary folders, removed with their owner, or by the next server where the process was killed.

The folder is locked by its process. If a lock can be taken, the owner is dead and the folder may be removed.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final

if os.name == "posix":
    import fcntl

_NAME: Final = re.compile(r"dumpscope-(?:[a-z]+-)?room-[a-z0-9_]{8}")


class TemporaryFolder:
    """A new and empty folder where temporary files lie (TMPDIR); removed by `close`, with the block, or with the object.

    purpose: letters in its name. Raises OSError where none can be made.
    """

    def __init__(self, purpose: str = "") -> None:
        while True:
            self.path = Path(tempfile.mkdtemp(prefix=f"dumpscope-{purpose and f'{purpose}-'}room-"))
            descriptor = _locked(self.path)
            if descriptor is not None:
                break
        self._end = weakref.finalize(self, _remove, self.path, descriptor)

    def close(self) -> None:
        self._end()

    def __enter__(self) -> TemporaryFolder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def remove_abandoned_folders() -> None:
    """Remove temporary folders of dead processes: folders of such a name, of this user, that are not locked; no links."""
    if os.name != "posix":
        return
    place = tempfile.gettempdir()
    with suppress(OSError):
        for path in [Path(place, name) for name in os.listdir(place) if _NAME.fullmatch(name)]:
            with suppress(OSError):
                descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
                try:
                    if os.fstat(descriptor).st_uid == os.geteuid():
                        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        shutil.rmtree(path, ignore_errors=True)
                finally:
                    os.close(descriptor)


def _locked(path: Path) -> int | None:
    """Lock a folder; None where `remove_abandoned_folders` was faster, -1 where there are no locks."""
    if os.name != "posix":
        return -1
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with suppress(OSError):  # a file system without locks: then it is not removed by others either
        fcntl.flock(descriptor, fcntl.LOCK_SH)
    if path.exists():
        return descriptor
    os.close(descriptor)
    return None


def _remove(path: Path, descriptor: int) -> None:
    shutil.rmtree(path, ignore_errors=True)
    if descriptor >= 0:
        os.close(descriptor)
