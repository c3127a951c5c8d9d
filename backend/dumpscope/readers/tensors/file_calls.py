"""Machine code that asks the system for files, many by one call from the interpreter. Importing this imports numba.

Only on Linux: the numbers and the places in `struct statx` are that system's, and the same on each of its processors.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Final

import numpy as np
from llvmlite import binding  # type: ignore[import-untyped]
from numba.core import types

from dumpscope.numba_support import machine
from dumpscope.readers.tensors.bulk import CLOSED, FAILED

_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_NO_FOLLOW: Final = 0x100
_TYPE_AND_SIZE: Final = 0x201
_MODE_PLACE: Final = 14  # in numbers of 16 bits
_SIZE_PLACE: Final = 5  # in numbers of 64 bits
_TYPE_MASK: Final = 0o170000
_REGULAR: Final = 0o100000

_statx: Any = types.ExternalFunction(
    "statx", types.int32(types.int32, types.intp, types.int32, types.uint32, types.intp)
)
_openat: Any = types.ExternalFunction("openat", types.int32(types.int32, types.intp, types.int32, types.int32))
_close: Any = types.ExternalFunction("close", types.int32(types.int32))


def available() -> bool:
    """Whether this system has the calls; machine code that names a missing one would end the process."""
    names = ("statx", "openat", "close")
    return sys.platform == "linux" and sys.maxsize > 2**32 and all(map(binding.address_of_symbol, names))


@machine
def _regular(status: Any) -> Any:
    return status.view(np.uint16)[_MODE_PLACE] & _TYPE_MASK == _REGULAR


@machine
def measure(directories: Any, names: int, starts: Any, largest: int, sizes: Any) -> None:
    """sizes[i]: bytes of the file in directories[i] named from byte starts[i] of `names` on, ended by a zero; FAILED if it is not
    regular or holds more than `largest`."""
    status = np.zeros(32, np.int64)
    for i in range(len(starts)):
        failed = _statx(directories[i], names + starts[i], _NO_FOLLOW, _TYPE_AND_SIZE, status.ctypes.data) != 0
        size = status[_SIZE_PLACE]
        sizes[i] = FAILED if failed or not _regular(status) or size > largest else size


@machine
def open_measured(directories: Any, names: int, starts: Any, sizes: Any, files: Any) -> None:
    """files[i]: descriptor of each file that has a size, else CLOSED, as where it cannot be opened."""
    for i in range(len(starts)):
        files[i] = CLOSED
        if sizes[i] != FAILED:
            files[i] = max(_openat(directories[i], names + starts[i], _FLAGS, 0), CLOSED)


@machine
def open_regular(directories: Any, names: int, starts: Any, largest: int, sizes: Any, files: Any) -> None:
    """Measure and open."""
    measure(directories, names, starts, largest, sizes)
    open_measured(directories, names, starts, sizes, files)


@machine
def close(files: Any) -> None:
    """Close the files that are open."""
    for i in range(len(files)):
        if files[i] != CLOSED:
            _close(files[i])
            files[i] = CLOSED
