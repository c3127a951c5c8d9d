"""Files that torch itself wrote come back as torch sees them (tests/data/make_tensors.py)."""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dumpscope.errors import TensorError
from dumpscope.readers.tensors import mapped_file, torch_file
from dumpscope.readers.tensors.arrays import ELEMENT_TYPES, LoadedTensor

ARCHIVE = Path(__file__).parents[1] / "data" / "tensors.zip"
with zipfile.ZipFile(ARCHIVE) as _archive:
    INDEX: dict[str, dict[str, Any]] = json.loads(_archive.read("index.json"))
TENSORS = [name for name, about in INDEX.items() if "shape" in about]
TREES = [name for name, about in INDEX.items() if "tree" in about]
REFUSED = [name for name, about in INDEX.items() if "refused" in about]


@pytest.fixture(scope="module")
def tensors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tensors")
    with zipfile.ZipFile(ARCHIVE) as archive:
        archive.extractall(folder)
    return folder


def assert_is(loaded: LoadedTensor, about: dict[str, Any]) -> None:
    assert loaded.dtype == about["dtype"]
    assert loaded.shape == loaded.array.shape == tuple(about["shape"])
    assert loaded.requires_grad is about["requires_grad"]
    assert loaded.parameter is about["parameter"]
    assert not loaded.array.flags.writeable
    assert loaded.array.dtype.isnative
    assert hashlib.sha256(np.ascontiguousarray(loaded.array).tobytes()).hexdigest() == about["sha256"]


@pytest.mark.parametrize("name", TENSORS)
def test_a_tensor_has_the_bytes_torch_sees(tensors: Path, name: str) -> None:
    assert_is(torch_file.load(tensors / name, root=tensors), INDEX[name])


@pytest.mark.parametrize("name", [name for name in TENSORS if "legacy" not in name])
def test_a_mapped_file_gives_the_same_as_a_read_one(tensors: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapped_file, "MAPPED_FROM", 1)
    assert_is(torch_file.load(tensors / name), INDEX[name])


@pytest.mark.parametrize("name", [name for name in TENSORS if "legacy" not in name])
def test_a_recompressed_file_gives_the_same(tensors: Path, tmp_path: Path, name: str) -> None:
    packed = tmp_path / "packed.pt"
    repack(tensors / name, packed, compression=zipfile.ZIP_DEFLATED)
    assert_is(torch_file.load(packed), INDEX[name])


def repack(source: Path, target: Path, *, compression: int, change: dict[str, bytes] | None = None) -> None:
    """Write the members of a zip again, some with new content ("byteorder" means "<prefix>/byteorder")."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", compression) as new:
        for member in old.namelist():
            data = (change or {}).get(member.split("/", 1)[1], old.read(member))
            new.writestr(member, data)


@pytest.mark.parametrize("name", [name for name in TENSORS if "legacy" not in name and INDEX[name]["shape"] != [0, 3]])
def test_a_big_endian_file_gives_the_same(tensors: Path, tmp_path: Path, name: str) -> None:
    unit = ELEMENT_TYPES[INDEX[name]["dtype"]].unit
    if name == "view_dtype.pt":
        unit = 4
    with zipfile.ZipFile(tensors / name) as archive:
        member = next(item for item in archive.namelist() if item.endswith("/data/0"))
        swapped = np.frombuffer(archive.read(member), f"<u{unit}").byteswap().tobytes()
    big = tmp_path / "big.pt"
    repack(tensors / name, big, compression=zipfile.ZIP_STORED, change={"byteorder": b"big", "data/0": swapped})
    assert_is(torch_file.load(big), INDEX[name])


@pytest.mark.parametrize("name", TREES)
def test_a_container_is_not_one_tensor(tensors: Path, name: str) -> None:
    with pytest.raises(TensorError) as caught:
        torch_file.load(tensors / name)
    assert caught.value.kind == "not_a_tensor"
    assert caught.value.hint
    assert caught.value.where == str(tensors / name)


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_a_plain_tensor_is_turned_down_with_a_remedy(tensors: Path, name: str) -> None:
    with pytest.raises(TensorError) as caught:
        torch_file.load(tensors / name)
    assert caught.value.kind == INDEX[name]["refused"]
    assert caught.value.hint


def test_an_expanded_tensor_stays_as_small_as_its_storage(tensors: Path) -> None:
    loaded = torch_file.load(tensors / "expanded_float32.pt")
    assert loaded.array.strides == (4, 0)
    assert loaded.nbytes == 3 * 1000 * 4
    conjugated = torch_file.load(tensors / "conj_expanded.pt")
    assert conjugated.array.strides[1] == 0
    assert conjugated.notes == ("conjugate bit applied",)


def test_a_large_file_is_mapped_and_not_copied(tensors: Path) -> None:
    array = torch_file.load(tensors / "megabyte.pt").array
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    assert isinstance(base, mmap.mmap)


def _real_records(dump_json: Path) -> list[tuple[Path, dict[str, Any]]]:
    found: list[tuple[Path, dict[str, Any]]] = []

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            if "data_name" in value:
                found.append((dump_json.parent / "dump_tensor_data" / value["data_name"], value))
            for part in value.values():
                walk(part)
        elif isinstance(value, list):
            for part in value:
                walk(part)

    walk(json.loads(dump_json.read_text())["data"])
    return found


def test_every_tensor_of_the_real_dumps_has_the_statistics_its_record_states(dumps: Path) -> None:
    checked = 0
    for dump_json in sorted([*dumps.rglob("dump.json"), *dumps.rglob("debug.json")]):
        for path, record in _real_records(dump_json):
            if not path.exists():
                continue
            loaded = torch_file.load(path, root=dumps)
            assert loaded.dtype == record["dtype"], path
            assert list(loaded.shape) == record["shape"], path
            checked += _agrees(loaded.array, record, path)
    assert checked > 15_000


def _agrees(array: np.ndarray[Any, Any], record: dict[str, Any], path: Path) -> int:
    """Number of stated statistics, each of which the array must bear out."""
    if array.size == 0 or array.dtype.kind == "c":
        return 0
    wide = array if array.dtype.kind in "iu" else array.astype(np.int64 if array.dtype.kind == "b" else np.float64)
    with np.errstate(all="ignore"):
        norm = float(np.sqrt(np.square(wide.astype(float)).sum()))
        largest = float(np.abs(wide.astype(float)).max())
        ours = {"Max": wide.max(), "Min": wide.min(), "Mean": wide.mean(), "Norm": norm}
    loose = 1e-2 if array.dtype.name in ("bfloat16", "float16") else 1e-5
    count = 0
    for name, number in ours.items():
        stated = record.get(name)
        if stated is None or isinstance(stated, str):
            continue
        if name == "Norm" and array.ndim == 0:
            stated = abs(stated)  # msprobe states the value itself as the norm of a scalar
        if name == "Norm" and ((math.isinf(stated) and norm > 1e19) or (stated == 0 and norm < 1e-22)):
            continue  # the squares left the range of float32
        if name in ("Max", "Min"):
            same = number == stated
        else:
            same = math.isclose(number, stated, rel_tol=loose, abs_tol=loose * largest)
        assert same or (math.isnan(number) and math.isnan(stated)), (path, name, number, stated)
        count += 1
    return count


@pytest.mark.filterwarnings("ignore:.*quantize_per_tensor:UserWarning")
def test_a_quantized_tensor_has_the_numbers_that_it_stands_for(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    value = torch.linspace(-3, 3, 24).reshape(2, 3, 4)
    scales, zeros = torch.tensor([0.1, 0.2, 0.3]), torch.tensor([1, 2, 3])
    for stored in (
        torch.quantize_per_tensor(value, 0.1, 3, torch.qint8),
        torch.quantize_per_tensor(value, 0.1, -3, torch.qint32).transpose(0, 2),
        torch.quantize_per_channel(value, scales, zeros, 1, torch.quint8),
        torch.quantize_per_tensor(value[:0], 0.1, 0, torch.quint8),
    ):
        torch.save(stored, tmp_path / "q.pt")
        found = torch_file.load(tmp_path / "q.pt")
        assert found.dtype == str(stored.dtype)
        assert np.array_equal(found.array, stored.dequantize().numpy())
    torch.save(torch.quantize_per_channel(value, scales, zeros.float(), 1, torch.quint4x2), tmp_path / "q.pt")
    with pytest.raises(TensorError, match="quantized"):
        torch_file.load(tmp_path / "q.pt")
