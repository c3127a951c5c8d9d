"""Random damage never ends in anything but a tensor or a TensorError."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from dumpscope.errors import TensorError
from dumpscope.readers.tensors import mapped_file, torch_file as torchfile

from .pickles import KINDS, tensor, torch_file


def _files(dumps: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted((dumps / "conv_L0").rglob("*.pt"))[:4]]


@given(data=st.data())
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_random_damage_ends_in_a_tensor_or_a_tensor_error(dumps: Path, tmp_path: Path, data: st.DataObject) -> None:
    raw = bytearray(data.draw(st.sampled_from(_files(dumps))))
    for _ in range(data.draw(st.integers(1, 6))):
        place = data.draw(st.integers(0, len(raw) - 1))
        raw[place] = data.draw(st.integers(0, 255))
    _survives(tmp_path / "a.pt", bytes(raw))


@given(body=st.lists(st.sampled_from(list(b"cRQ(tq\x00h]}saeu\x85\x86\x87)N\x88K\x01X.0212bdl\x94\x93")), max_size=60))
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_sequence_of_opcodes_ends_in_data_or_a_tensor_error(tmp_path: Path, body: list[int]) -> None:
    path = torch_file(tmp_path / "a.pt", tensor((4,), (1,)) + b"q\x00" + bytes(body))
    _survives(path, path.read_bytes())


def test_thousands_of_damaged_files_read_or_fail_cleanly(
    dumps: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(5)
    files = _files(dumps)
    for round_ in range(3000):
        raw = bytearray(chance.choice(files))
        for _ in range(chance.randint(1, 4)):
            raw[chance.randrange(len(raw))] = chance.randrange(256)
        monkeypatch.setattr(mapped_file, "MAPPED_FROM", 1 if round_ % 2 else 1 << 20)
        _survives(tmp_path / "a.pt", bytes(raw))


def _survives(path: Path, raw: bytes) -> None:
    path.write_bytes(raw)
    kind = None
    try:
        torchfile.load(path, budget=1 << 20)
    except TensorError as error:
        kind = error.kind
    assert kind is None or kind in KINDS
