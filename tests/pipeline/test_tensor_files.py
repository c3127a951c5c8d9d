"""Pairs of tensor files compared by several threads end exactly as they do one by one, whatever the files are."""

from __future__ import annotations

import os
import shutil
import zipfile
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from dumpscope.metrics.native import loader
from dumpscope.pipeline.compare import tensor_files
from dumpscope.pipeline.compare.tensor_files import FilePair, Found, compare_files
from dumpscope.readers.tensors import layout_cache

ARCHIVE = Path(__file__).parents[1] / "data" / "tensors.zip"
STORAGES = {np.dtype(np.float32): "FloatStorage", np.dtype(ml_dtypes.bfloat16): "BFloat16Storage"}
PLAIN = "twin.0.pt"


def save(path: Path, values: np.ndarray[Any, Any]) -> None:
    """A file as torch.save lays it out, for a tensor of any size."""
    sizes, steps = (
        b"(" + b"".join(b"J" + number.to_bytes(4, "little") for number in numbers) + b"t"
        for numbers in (values.shape, [step // values.itemsize for step in values.strides])
    )
    storage = f"((X\x07\0\0\0storagectorch\n{STORAGES[values.dtype]}\nX\1\0\0\x000X\3\0\0\0cpuJ".encode()
    pickled = b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n" + storage + values.size.to_bytes(4, "little")
    pickled += b"tQK\0" + sizes + steps + b"\x89ccollections\nOrderedDict\n)RtR."
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(zipfile.ZipInfo(f"{path.stem}/data.pkl"), pickled)  # a bare name would add the time
        about = zipfile.ZipInfo(f"{path.stem}/data/0")
        about.extra = b"FB" + (-(archive.fp.tell() + 34 + len(about.filename)) % 64).to_bytes(2, "little")  # type: ignore[union-attr]
        about.extra += bytes(about.extra[2])
        archive.writestr(about, values.tobytes("A"))


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Two sides with the same names: every kind of tensor, plain ones of a few sizes, and whatever else may lie in a dump."""
    random = np.random.default_rng(3)
    sides = tmp_path_factory.mktemp("target"), tmp_path_factory.mktemp("golden")
    for number, side in enumerate(sides):
        with zipfile.ZipFile(ARCHIVE) as archive:
            archive.extractall(side)
        for size in (1, 64, 5000, 70_000):
            for turn in range(9, 12):
                values = np.linspace(-2, 3, size, dtype=np.float32) + number * random.standard_normal(size, np.float32)
                values[turn % size :: 700] = (np.nan, np.inf, 0.0)[(turn + number) % 3]
                save(side / f"flat.{size}.{turn}.pt", values)
                save(side / f"mixed.{size}.{turn}.pt", values.astype((np.float32, ml_dtypes.bfloat16)[number]))
                save(side / f"other.{size}.{turn}.pt", values[: size - 3 * number or None])
        square = random.standard_normal((70, 80), np.float32)
        save(side / "square.pt", square)
        save(side / "turned.pt", (square, square.T)[number])
        save(side / "large.pt", random.standard_normal(300_000, np.float32))
        save(side / "only.large.here.pt", random.standard_normal((200, 300_000)[number], np.float32))
        whole = (side / "flat.5000.9.pt").read_bytes()
        (side / "cut.pt").write_bytes(whole[: -number or None])
        (side / "empty.pt").write_bytes(b"")
        (side / "short.pt").write_bytes(whole[:27])
        (side / "text.pt").write_text("no tensor at all")
        (side / "name with blanks \u00e9 \U0001f600.pt").write_bytes(whole)
        (side / "below").mkdir()
        (side / "below" / "flat.pt").write_bytes(whole)
        (side / "folder.pt").mkdir()
        (side / "inside.pt").symlink_to("flat.5000.9.pt")
        (side / "outside.pt").symlink_to(sides[1 - number] / "flat.5000.9.pt")
        (side / "dangling.pt").symlink_to("nowhere")
        os.mkfifo(side / "fifo.pt")
        np.save(side / "values.npy", square)
        (side / "flat.npy").write_bytes(whole)
        (side / f"only.{number}.pt").write_bytes(whole)
    return str(sides[0]), str(sides[1])


ODD = [
    "only.0.pt", "only.1.pt", "missing.pt", "below/flat.pt", "../flat.pt", ".", "..", "", "a\0b.pt", "x" * 300, "\ud800.pt",
]  # fmt: skip


@pytest.fixture(autouse=True)
def eager() -> Iterator[None]:
    """The compiled kernel for every pair, however small or few they are."""
    layout_cache.forget()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loader, "LOAD_AT", 0)
        patch.setattr(loader, "COMPILE_AT", 0)
        patch.setattr(loader, "SMALLEST", 1)
        assert loader.load_kernel(1)
        yield
    layout_cache.forget()


def at_once(roots: tuple[str, str], pairs: list[FilePair], threads: int = 2) -> list[Found]:
    return sorted((found for some in compare_files(roots, pairs, threads) for found in some), key=itemgetter(0))


def one_by_one(roots: tuple[str, str], pairs: list[FilePair]) -> list[Found]:
    return [(pair.row, tensor_files._compare(roots, pair, 1)) for pair in pairs]


def assert_same(found: list[Found], expected: list[Found], pairs: list[FilePair]) -> None:
    for one, other, pair in zip(found, expected, pairs, strict=True):
        assert repr(one) == repr(other), pair  # nan equals nan in text


def names(roots: tuple[str, str]) -> list[str]:
    return sorted({*os.listdir(roots[0]), *os.listdir(roots[1])} - {"index.json"}) + ODD


@pytest.mark.parametrize("elements", [0, tensor_files.ALONE])
@pytest.mark.parametrize("learnt", [False, True])
def test_every_kind_of_file_ends_as_it_does_alone(roots: tuple[str, str], learnt: bool, elements: int) -> None:
    pairs = [FilePair(row, name, name, elements) for row, name in enumerate(names(roots))]
    expected = one_by_one(roots, pairs)
    if not learnt:
        layout_cache.forget()
    assert_same(at_once(roots, pairs), expected, pairs)
    assert sum(isinstance(facts, str) for _, facts in expected) > 30
    assert sum(not isinstance(facts, str) for _, facts in expected) > 200


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_two_files_end_as_they_do_alone_in_whatever_company(roots: tuple[str, str], data: st.DataObject) -> None:
    every = names(roots)
    plain = [name for name in every if name.startswith(("flat", "mixed", "other", "square", "turned"))]
    name = st.one_of(st.sampled_from(plain), st.sampled_from(every))
    same = st.sampled_from(plain).map(lambda one: (one, one))
    drawn = data.draw(st.lists(st.one_of(same, st.tuples(name, name)), max_size=100))
    sizes = st.sampled_from((0, tensor_files.ALONE))
    pairs = [FilePair(row, *both, data.draw(sizes)) for row, both in enumerate(drawn)]
    if data.draw(st.booleans()):
        layout_cache.forget()
    found = at_once(roots, pairs, data.draw(st.integers(1, 3)))
    assert_same(found, one_by_one(roots, pairs), pairs)


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the files that were compared one by one."""
    taken: list[str] = []
    compare = tensor_files._compare

    def noted(roots: tuple[str, str], pair: FilePair, threads: int) -> Any:
        taken.append(pair.target)
        return compare(roots, pair, threads)

    monkeypatch.setattr(tensor_files, "_compare", noted)
    return taken


def copies(folder: Path, source: str, count: int) -> list[FilePair]:
    pairs = [FilePair(row, f"copy.{row}.pt", f"copy.{row}.pt", 0) for row in range(count)]
    for pair in pairs:
        shutil.copyfile(source, folder / pair.target)
    return pairs


def test_a_folder_that_cannot_be_opened_is_told_of_by_each_file(roots: tuple[str, str]) -> None:
    pairs = [FilePair(row, PLAIN, PLAIN, 0) for row in range(3)]
    missing = roots[0], roots[1] + "/nowhere"
    assert_same(at_once(missing, pairs), one_by_one(missing, pairs), pairs)


def test_a_folder_may_be_reached_by_a_link(roots: tuple[str, str], tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(roots[0])
    linked = str(tmp_path / "link"), roots[1]
    pairs = [FilePair(row, f"flat.5000.{row + 9}.pt", f"flat.5000.{row + 9}.pt", 0) for row in range(3)]
    found = at_once(linked, pairs, threads=1)
    assert_same(found, one_by_one(roots, pairs), pairs)


def test_whoever_wants_no_more_gets_no_more(roots: tuple[str, str], tmp_path: Path, alone: list[str]) -> None:
    pairs = copies(tmp_path, f"{roots[0]}/text.pt", 5000)
    results = compare_files((str(tmp_path), str(tmp_path)), pairs, 1)
    next(results)
    results.close()  # type: ignore[attr-defined]
    assert len(alone) < len(pairs)


LARGE = 90_000
"""Elements of a tensor that a thread of the pool compares."""


@pytest.mark.parametrize("size", [4000, LARGE])
def test_files_of_one_size_that_are_laid_out_in_several_ways_are_told_apart(tmp_path: Path, size: int) -> None:
    shapes = [(40, size // 40), (50, size // 50), (size // 50, 50), (size // 40, 40)]
    random = np.random.default_rng(1)
    sides = tmp_path / "target", tmp_path / "golden"
    pairs = [FilePair(row, f"twin.{row:02}.pt", f"twin.{row:02}.pt", size) for row in range(60)]
    for side in sides:
        side.mkdir()
        for pair in pairs:
            save(side / pair.target, random.standard_normal(size, np.float32).reshape(shapes[pair.row % 4]))
    assert len({path.stat().st_size for side in sides for path in side.iterdir()}) == 1
    both = str(sides[0]), str(sides[1])
    found = at_once(both, pairs)
    assert not any(isinstance(facts, str) for _, facts in found)
    assert_same(found, one_by_one(both, pairs), pairs)
