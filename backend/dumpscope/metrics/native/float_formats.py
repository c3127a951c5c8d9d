"""Converts between small float formats. These loops are compiled into `fused.compare`; its code on disk is compiled again
only when fused.py changes.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dumpscope.numba_support import WIDENS, machine, widened

FLOAT32: Final = 0
BFLOAT16: Final = 1
FLOAT16: Final = 2

THIRTEEN: Final = np.uint32(13)
SIXTEEN: Final = np.uint32(16)
ONE: Final = np.uint32(1)
SIGN: Final = np.uint32(0x80000000)
MAGNITUDE: Final = np.uint32(0x7FFFFFFF)
UPPER: Final = np.uint32(0xFFFF0000)

if WIDENS:

    @machine
    def _decode_halves(narrow: Any, size: int, bits: Any) -> None:
        for i in range(size):
            bits[i] = np.float32(widened(narrow[i])).view(np.uint32)

else:

    @machine
    def _decode_halves(narrow: Any, size: int, bits: Any) -> None:
        for i in range(size):  # float16 exponents are 112 lower; the product also converts subnormal numbers
            half = np.uint32(narrow[i])
            magnitude = np.uint32(half & np.uint32(0x7FFF))
            value = np.float32(np.uint32(magnitude << THIRTEEN).view(np.float32) * np.float32(2.0**112))
            pattern = np.float32(value).view(np.uint32)
            if magnitude >= np.uint32(0x7C00):
                pattern = np.uint32(pattern | np.uint32(0x7F800000))
            bits[i] = np.uint32(pattern | ((half & np.uint32(0x8000)) << SIXTEEN))


@machine
def decode(wide: Any, narrow: Any, form: int, size: int, bits: Any) -> None:
    """Float32 bit patterns of `size` elements."""
    if form == FLOAT32:
        for i in range(size):
            bits[i] = wide[i]
    elif form == BFLOAT16:
        for i in range(size):
            bits[i] = np.uint32(narrow[i]) << SIXTEEN
    else:
        _decode_halves(narrow, size, bits)


@machine
def usable(bits: Any, narrow: Any, size: int, keys: Any) -> None:
    """16-bit patterns; 0 if the pair was excluded (its bits are 0 then)."""
    for i in range(size):
        keys[i] = narrow[i] if bits[i] != 0 else np.uint16(0)


@machine
def round_to_bfloat16(bits: Any, size: int, keys: Any) -> None:
    """Patterns of the bfloat16 numbers nearest to float32 numbers, ties to even."""
    for i in range(size):
        magnitude = np.uint32(bits[i] & MAGNITUDE)
        rounded = np.uint32(magnitude + np.uint32(0x7FFF) + ((magnitude >> SIXTEEN) & ONE))
        keys[i] = np.uint16(np.uint32(rounded | (bits[i] & SIGN)) >> SIXTEEN)
