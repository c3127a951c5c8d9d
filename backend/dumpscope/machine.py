"""How functions become machine code, and the one instruction that numba has no word for. Importing this imports numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import carray  # type: ignore[attr-defined]
from numba.core import cgutils, types
from numba.extending import intrinsic

Function = TypeVar("Function", bound=Callable[..., Any])


def machine(function: Function) -> Function:
    """Sums may be reordered and fused; nan and infinity keep their meaning, quotients stay exact."""
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"nsz", "reassoc", "contract"}}
    try:
        return numba.njit(cache=True, **options)(function)  # type: ignore[no-any-return]
    except RuntimeError:  # neither this folder nor a user cache folder can be written
        return numba.njit(**options)(function)  # type: ignore[no-any-return]


def _lower_prefetch(_typing: Any, values: Any, place: Any) -> Any:
    """Numba's way to emit one instruction: ask for the cache line of values[place], into the second-level cache."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        line = builder.bitcast(builder.gep(array.data, [arguments[1]]), ir.IntType(8).as_pointer())
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [line.type, number, number, number])
        instruction = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")  # type: ignore[no-untyped-call]
        builder.call(instruction, [line, number(0), number(2), number(1)])  # for reading, locality 2, data
        return context.get_dummy_value()

    return types.none(values, types.intp), emit


prefetch: Any = intrinsic(_lower_prefetch)


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


@machine
def uint8_at(address: int, size: int) -> Any:
    return carray(_pointer(address), (size,), np.uint8)


@machine
def fetch(first: Any, second: Any, third: Any, fourth: Any, start: int, size: int) -> None:
    """Ask for pairs that come later: what the loops read comes in bursts that hardware does not foresee.

    first, second: uint32; third, fourth: uint16; an empty array is skipped
    """
    if start + size <= len(first):
        for place in range(start, start + size, 16):
            prefetch(first, place)
    if start + size <= len(second):
        for place in range(start, start + size, 16):
            prefetch(second, place)
    if start + size <= len(third):
        for place in range(start, start + size, 32):
            prefetch(third, place)
    if start + size <= len(fourth):
        for place in range(start, start + size, 32):
            prefetch(fourth, place)
