"""One process per folder: who writes into a rank's folder holds a lock on it until the step ends.

The operating system gives the lock back when a process dies. Where locks do not work (Windows, some network file systems) nothing
is claimed.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]


class Claim:
    """The folder that this process writes into, if any. The lock follows a folder that is renamed."""

    def __init__(self) -> None:
        self._handle = -1

    def take(self, folder: Path) -> bool:
        """Claim a folder, made where it is absent. False where another living process has it; what was claimed stays then."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            handle = _locked(folder)
        except BlockingIOError:
            return False
        except OSError:
            return True  # whoever writes there will say what is wrong
        self.release()
        self._handle = handle
        return True

    def release(self) -> None:
        handle, self._handle = self._handle, -1
        if handle >= 0:
            with contextlib.suppress(OSError):
                fcntl.flock(
                    handle, fcntl.LOCK_UN
                )  # children of a fork share the lock: to close it here would not end it
            os.close(handle)

    def forget(self) -> None:
        """In a forked child: the lock is its parent's."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)


def is_free(folder: Path) -> bool:
    """Whether no living process has claimed a folder."""
    if not folder.is_dir():
        return True
    try:
        os.close(_locked(folder))
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def _locked(folder: Path) -> int:
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
