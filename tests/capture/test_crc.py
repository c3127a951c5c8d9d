"""Our CRC-32 is zlib's, for any bytes of any length."""

from __future__ import annotations

import threading
import zlib

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dumpscope_capture.values.hashing import CHUNK, FOLDED, crc

SIZES = [
    0,
    1,
    FOLDED - 1,
    FOLDED,
    FOLDED + 1,
    FOLDED + 4097,
    CHUNK - 1,
    CHUNK,
    CHUNK + 1,
    CHUNK + FOLDED,
    3 * CHUNK + 12_345,
]


def noise(size: int, seed: int = 0) -> memoryview:
    return memoryview(np.random.default_rng(seed).bytes(size))


@pytest.mark.parametrize("size", SIZES)
def test_it_is_that_of_zlib(size: int) -> None:
    data = noise(size)
    assert crc(data) == zlib.crc32(data)
    assert crc(memoryview(bytes(size))) == zlib.crc32(bytes(size))
    assert crc(memoryview(b"\xff" * size)) == zlib.crc32(b"\xff" * size)


@settings(max_examples=60, deadline=None)
@given(st.integers(FOLDED, 2 * CHUNK), st.integers(0, 100))
def test_it_is_that_of_zlib_for_any_length(size: int, seed: int) -> None:
    data = noise(size, seed)
    assert crc(data) == zlib.crc32(data)


@pytest.mark.parametrize("size", [FOLDED + 3, CHUNK])
def test_every_single_bit_counts(size: int) -> None:
    data = bytearray(size)
    found = {crc(memoryview(data))}
    places = [*range(0, size, size // 200), size - 1]
    for place in places:
        data[place] = 1
        found.add(crc(memoryview(data)))
        data[place] = 0
    assert len(found) == len(places) + 1


def test_threads_do_not_disturb_each_other() -> None:
    pieces = [noise(CHUNK + 1000 * seed, seed) for seed in range(4)]
    found: dict[int, set[int]] = {}

    def work(number: int) -> None:
        found[number] = {crc(pieces[number]) for _ in range(10)}

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(pieces))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: {zlib.crc32(piece)} for number, piece in enumerate(pieces)}
