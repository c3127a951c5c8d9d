"""How functions become machine code, and what numba has no word for. Importing this imports numba."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar

import numba
import numpy as np
from llvmlite import binding, ir  # type: ignore[import-untyped]
from numba import carray  # type: ignore[attr-defined]
from numba.core import cgutils, types
from numba.extending import intrinsic

Function = TypeVar("Function", bound=Callable[..., Any])


def machine(function: Function) -> Function:
    """Sums may be reordered and fused; nan and infinity keep their meaning, quotients stay exact."""
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"nsz", "reassoc", "contract"}}
    try:
        made = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # neither this folder nor a user cache folder can be written
        return numba.njit(**options)(function)  # type: ignore[no-any-return]
    file = made._cache._cache_file
    file._source_stamp = (file._source_stamp, _sources(Path(function.__code__.co_filename).parent))
    return made  # type: ignore[no-any-return]


def code_folder(function: Any) -> Path | None:
    """Where the machine code of a function is stored; None where no folder can be written."""
    stored = getattr(function._cache, "_cache_path", None)
    return None if stored is None else Path(stored)


def has_code(function: Any, arguments: tuple[Any, ...]) -> bool:
    """Whether the machine code of a function for such arguments is stored."""
    if code_folder(function) is None:
        return False
    kinds = tuple(numba.typeof(argument) for argument in arguments)  # type: ignore[no-untyped-call]
    return function._cache.load_overload(kinds, function.targetctx) is not None


@cache
def _sources(folder: Path) -> str:
    """Digest of what the machine code of a folder's functions is made of: this file, the folder and the folder above.

    numba keeps machine code until the function's own file changes, but functions and constants of other files become part of it:
    without this digest the old code would go on running after an upgrade.
    """
    digest = hashlib.sha256()
    for source in (Path(__file__), *sorted(folder.glob("*.py")), *sorted(folder.parent.glob("*.py"))):
        digest.update(source.read_bytes())
    return digest.hexdigest()


def _lower_pointer(_typing: Any, _address: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(types.intp), emit


_pointer: Any = intrinsic(_lower_pointer)


@machine
def uint32_at(address: int, size: int) -> Any:
    """`size` numbers of memory that the caller keeps alive. An array as argument would need machine code for memory that can be
    written and for memory that cannot, and three times as long to hand over."""
    return carray(_pointer(address), (size,), np.uint32)


@machine
def uint16_at(address: int, size: int) -> Any:
    return carray(_pointer(address), (size,), np.uint16)


WIDENS: Final[bool] = binding.get_host_cpu_features().get("f16c", False)
"""Whether the processor turns float16 into float32 by an instruction that LLVM is known to use; elsewhere it may call a function
that is not there."""


def _lower_widened(_typing: Any, _pattern: Any) -> Any:
    def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.fpext(builder.bitcast(arguments[0], ir.HalfType()), ir.FloatType())

    return types.float32(types.uint16), emit


widened: Any = intrinsic(_lower_widened)
"""The float32 number of a float16 pattern, only where WIDENS."""

READS: Final[bool] = sys.platform == "linux" and sys.maxsize > 2**32 and bool(binding.address_of_symbol("pread"))
"""Whether machine code can read files; code that names a missing function would end the process."""

if READS:
    _pread: Any = types.ExternalFunction("pread", types.intp(types.int32, types.intp, types.intp, types.int64))

    @machine
    def read_at(descriptor: int, address: int, size: int, start: int) -> Any:
        """Whether `size` bytes of a file from byte `start` on went to an address."""
        return _pread(descriptor, address, size, start) == size

else:

    @machine
    def read_at(descriptor: int, address: int, size: int, start: int) -> Any:
        return False
