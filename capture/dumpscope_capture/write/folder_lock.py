"""One process per folder: a process that writes into a rank's folder holds a lock on it until the step ends.

The operating system releases the lock when the process dies. Where locks do not work (Windows, some network file systems), no
lock is taken.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]


class FolderLock:
    """Lock on the folder that this process writes into, if any. A renamed folder stays locked."""

    def __init__(self) -> None:
        self._handle = -1

    def take(self, folder: Path) -> bool:
        """Lock a folder, made where it is absent. False if another living process holds it; the lock held before then stays."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            handle = _lock(folder)
        except BlockingIOError:
            return False
        except OSError:
            return True  # the first write will report the error
        self.release()
        self._handle = handle
        return True

    def release(self) -> None:
        handle, self._handle = self._handle, -1
        if handle >= 0:
            with contextlib.suppress(OSError):
                # Forked children share the lock, so closing the handle here would not release it.
                fcntl.flock(handle, fcntl.LOCK_UN)
            os.close(handle)

    def forget(self) -> None:
        """In a forked child: close the handle; the lock belongs to the parent."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)


def is_free(folder: Path) -> bool:
    """Whether no living process has locked a folder."""
    if not folder.is_dir():
        return True
    try:
        os.close(_lock(folder))
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def _lock(folder: Path) -> int:
    """Handle of a locked folder, -1 where there are no locks. Raises BlockingIOError where another process has locked it."""
    if fcntl is None:
        return -1
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(handle)
        raise
    return handle
