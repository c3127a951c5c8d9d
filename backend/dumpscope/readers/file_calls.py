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

from dumpscope.machine import machine, uint8_at
from dumpscope.readers.bulk import CLOSED, FAILED, WHOLE
from dumpscope.readers.twins import END

_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_NO_FOLLOW: Final = 0x100
_TYPE_AND_SIZE: Final = 0x201
_MODE_PLACE: Final = 14  # in numbers of 16 bits
_SIZE_PLACE: Final = 5  # in numbers of 64 bits
_TYPE_MASK: Final = 0o170000
_REGULAR: Final = 0o100000
_NAME_LENGTH: Final = 26  # place in a zip file of the length of its first member's name

_statx: Any = types.ExternalFunction(
    "statx", types.int32(types.int32, types.intp, types.int32, types.uint32, types.intp)
)
_openat: Any = types.ExternalFunction("openat", types.int32(types.int32, types.intp, types.int32, types.int32))
_pread: Any = types.ExternalFunction("pread", types.intp(types.int32, types.intp, types.intp, types.int64))
_close: Any = types.ExternalFunction("close", types.int32(types.int32))


def available() -> bool:
    """Whether this system has the calls; machine code that names a missing one would end the process."""
    names = ("statx", "openat", "pread", "close")
    return sys.platform == "linux" and sys.maxsize > 2**32 and all(map(binding.address_of_symbol, names))


@machine
def _regular(status: Any) -> Any:
    return status.view(np.uint16)[_MODE_PLACE] & _TYPE_MASK == _REGULAR


@machine
def measure(directory: int, names: int, starts: Any, sizes: Any) -> None:
    """sizes[i]: bytes of the file named from byte starts[i] of `names` on, ended by a zero; FAILED if it is not regular."""
    status = np.zeros(32, np.int64)
    for i in range(len(starts)):
        failed = _statx(directory, names + starts[i], _NO_FOLLOW, _TYPE_AND_SIZE, status.ctypes.data) != 0
        sizes[i] = FAILED if failed or not _regular(status) else status[_SIZE_PLACE]


@machine
def read(directory: int, names: int, starts: Any, slots: Any, sizes: Any, stems: Any, files: Any) -> None:
    """Read each file that was measured to address slots[i]: all of it up to WHOLE bytes, else END bytes at either end.

    slots[i]: has room for that and one byte more
    sizes[i]: becomes FAILED where the file is of another size by now or any call fails, as reading at a place does of what is no
        regular file: it is not asked a second time what it is
    stems[i]: the length of the first member's name if it is a zip file
    files[i]: its descriptor, to be closed, where only the ends were read, else CLOSED
    """
    for i in range(len(starts)):
        size = sizes[i]
        sizes[i] = FAILED
        stems[i] = 0
        files[i] = CLOSED
        if size < 0:
            continue
        descriptor = _openat(directory, names + starts[i], _FLAGS, 0)
        if descriptor < 0:
            continue
        if size <= WHOLE:  # one byte more is asked for than there should be
            same = _pread(descriptor, slots[i], size + 1, 0) == size
        else:
            same = _pread(descriptor, slots[i], END, 0) == END
            same = same and _pread(descriptor, slots[i] + END, END + 1, size - END) == END
        if same:
            sizes[i] = size
        if same and size > WHOLE:
            files[i] = descriptor
        else:
            _close(descriptor)
        if sizes[i] >= _NAME_LENGTH + 2:
            length = uint8_at(slots[i] + _NAME_LENGTH, 2)
            stems[i] = np.int64(length[0]) + 256 * np.int64(length[1])


@machine
def close(files: Any) -> None:
    """Close the files that are open."""
    for i in range(len(files)):
        if files[i] != CLOSED:
            _close(files[i])
            files[i] = CLOSED


@machine
def agree(addresses: Any, parts: Any, fixed: int, answers: Any) -> None:
    """answers[i]: 1 where the bytes at addresses[i] hold those at address `fixed` in the ranges `parts`, shape (m, 2)."""
    for i in range(len(addresses)):
        answers[i] = 1
        at = fixed
        for part in range(len(parts)):
            length = parts[part, 1] - parts[part, 0]
            here = uint8_at(addresses[i] + parts[part, 0], length)
            there = uint8_at(at, length)
            differing = np.uint8(0)
            for place in range(length):
                differing |= here[place] ^ there[place]
            if differing != 0:
                answers[i] = 0
                break
            at += length
