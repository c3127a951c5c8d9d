"""Pairs of tensor files compared many at once end exactly as they do one by one."""

from __future__ import annotations

import os
import shutil
import sys
import zipfile
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from dumpscope.metrics import LARGEST_READ_WHOLE, ElementLayout, compare_many, pair_kind
from dumpscope.metrics.native import loader
from dumpscope.pipeline.compare import tensor_files
from dumpscope.pipeline.compare.tensor_files import FilePair, Found, compare_files
from dumpscope.readers.tensors import bulk, layout_cache

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="files are read in bulk on Linux only")

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
        patch.setattr(loader, "SMALLEST", 1)
        assert loader.load_kernel(1)
        yield
    layout_cache.forget()


def at_once(roots: tuple[str, str], pairs: list[FilePair], threads: int = 2, *, available: bool = True) -> list[Found]:
    assert (bulk.file_calls() is not None) == available
    return sorted((found for some in compare_files(roots, pairs, threads) for found in some), key=itemgetter(0))


def one_by_one(roots: tuple[str, str], pairs: list[FilePair]) -> list[Found]:
    return [(pair.row, tensor_files._compare(roots, pair, 1)) for pair in pairs]


def assert_same(found: list[Found], expected: list[Found], pairs: list[FilePair]) -> None:
    for one, other, pair in zip(found, expected, pairs, strict=True):
        assert repr(one) == repr(other), pair  # nan equals nan in text


def names(roots: tuple[str, str]) -> list[str]:
    return sorted({*os.listdir(roots[0]), *os.listdir(roots[1])} - {"index.json"}) + ODD


@pytest.mark.parametrize("learnt", [False, True])
def test_every_kind_of_file_ends_as_it_does_alone(roots: tuple[str, str], learnt: bool) -> None:
    pairs = [FilePair(row, name, name, 0) for row, name in enumerate(names(roots))]
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
    pairs = [FilePair(row, *both, 0) for row, both in enumerate(drawn)]
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


def test_only_the_first_of_files_laid_out_alike_is_compared_alone(
    roots: tuple[str, str], tmp_path: Path, alone: list[str]
) -> None:
    pairs = copies(tmp_path, f"{roots[0]}/flat.5000.9.pt", 200)
    (tmp_path / "copy.77.pt").unlink()
    (tmp_path / "copy.77.pt").symlink_to("copy.78.pt")
    found = at_once((str(tmp_path), str(tmp_path)), pairs, threads=1)
    assert alone == ["copy.0.pt", "copy.77.pt"]
    assert len({repr(facts) for _, facts in found}) == 1


def test_a_folder_that_cannot_be_opened_is_told_of_by_each_file(roots: tuple[str, str]) -> None:
    pairs = [FilePair(row, PLAIN, PLAIN, 0) for row in range(3)]
    missing = roots[0], roots[1] + "/nowhere"
    assert_same(at_once(missing, pairs), one_by_one(missing, pairs), pairs)


def test_a_folder_may_be_reached_by_a_link(roots: tuple[str, str], tmp_path: Path, alone: list[str]) -> None:
    (tmp_path / "link").symlink_to(roots[0])
    linked = str(tmp_path / "link"), roots[1]
    pairs = [FilePair(row, f"flat.5000.{row + 9}.pt", f"flat.5000.{row + 9}.pt", 0) for row in range(3)]
    found = at_once(linked, pairs, threads=1)
    assert alone == ["flat.5000.9.pt", "flat.5000.10.pt"]  # two lengths of names
    assert_same(found, one_by_one(roots, pairs), pairs)


def test_without_the_calls_files_are_compared_one_by_one(
    roots: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = [FilePair(row, name, name, 0) for row, name in enumerate(names(roots))]
    expected = at_once(roots, pairs)
    monkeypatch.setitem(sys.modules, "dumpscope.readers.tensors.file_calls", None)
    bulk.file_calls.cache_clear()
    try:
        found = at_once(roots, pairs, available=False)
    finally:
        bulk.file_calls.cache_clear()
    assert_same(found, expected, pairs)


def test_whoever_wants_no_more_gets_no_more(roots: tuple[str, str], tmp_path: Path, alone: list[str]) -> None:
    pairs = copies(tmp_path, f"{roots[0]}/text.pt", 5000)
    results = compare_files((str(tmp_path), str(tmp_path)), pairs, 1)
    next(results)
    results.close()  # type: ignore[attr-defined]
    assert len(alone) < len(pairs)


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


LARGE = LARGEST_READ_WHOLE // 3
"""Elements of a tensor whose file is not read as a whole."""


def test_of_a_file_that_is_not_small_only_the_ends_are_read_to_recognise_it(
    roots: tuple[str, str], tmp_path: Path, alone: list[str]
) -> None:
    save(tmp_path / PLAIN, np.arange(LARGE, dtype=np.float32))
    pairs = copies(tmp_path, str(tmp_path / PLAIN), 90)
    other = bytearray((tmp_path / PLAIN).read_bytes())
    other[-5] ^= 1
    (tmp_path / "copy.50.pt").write_bytes(other)
    before = open_files()
    found = at_once((str(tmp_path), str(tmp_path)), pairs, threads=1)
    assert open_files() == before
    assert alone == ["copy.0.pt", "copy.50.pt"]
    assert_same(found, one_by_one((str(tmp_path), str(tmp_path)), pairs), pairs)


@pytest.mark.parametrize("size", [4000, LARGE // 400 * 400])
def test_files_of_one_size_that_are_laid_out_in_several_ways_are_told_apart(
    tmp_path: Path, alone: list[str], size: int
) -> None:
    shapes = [(40, size // 40), (50, size // 50), (size // 50, 50), (size // 40, 40)]
    random = np.random.default_rng(1)
    sides = tmp_path / "target", tmp_path / "golden"
    pairs = [FilePair(row, f"twin.{row:02}.pt", f"twin.{row:02}.pt", 0) for row in range(60)]
    for side in sides:
        side.mkdir()
        for pair in pairs:
            save(side / pair.target, random.standard_normal(size, np.float32).reshape(shapes[pair.row % 4]))
    assert len({path.stat().st_size for side in sides for path in side.iterdir()}) == 1
    both = str(sides[0]), str(sides[1])
    found = at_once(both, pairs, threads=1)
    assert len(alone) == len(shapes)
    assert_same(found, one_by_one(both, pairs), pairs)


@pytest.mark.parametrize("elements", [LARGE, 2000])
def test_a_file_that_is_cut_after_it_was_opened_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, elements: int
) -> None:
    save(tmp_path / PLAIN, np.arange(elements, dtype=np.float32))
    pairs = copies(tmp_path, str(tmp_path / PLAIN), 5)

    def cut_first(*arguments: Any) -> Any:
        os.truncate(tmp_path / "copy.3.pt", elements)
        return compare_many(*arguments)

    monkeypatch.setattr(tensor_files, "compare_many", cut_first)
    found = at_once((str(tmp_path), str(tmp_path)), pairs, threads=1)
    assert [isinstance(facts, str) for _, facts in found] == [False, False, False, True, False]


def test_nothing_comes_of_a_file_that_ends_before_its_tensor_does(tmp_path: Path) -> None:
    path = tmp_path / "zeros"
    path.write_bytes(bytes(LARGE * 4))
    parts = np.array([(0, 32)], np.int64)
    answers = []
    for more in (0, 1):
        side = ElementLayout(start=4 * more, size=LARGE * 4, ends=16, parts=parts, fixed=bytes(32))
        sort = pair_kind((np.dtype(np.float32), side), (np.dtype(np.float32), side), (LARGE,))
        assert sort is not None
        with path.open("rb") as file:
            descriptors = np.full((2, 1), file.fileno(), np.int64)
            answers += compare_many([sort], descriptors, np.zeros(1, np.bool_))
    assert [facts and facts.elements for facts in answers] == [LARGE, None]


@pytest.mark.parametrize(("size", "step"), [(40, 1), (LARGE, 19)])
def test_a_layout_is_recognised_by_machine_code_where_it_is_by_python(
    tmp_path: Path, alone: list[str], size: int, step: int
) -> None:
    save(tmp_path / PLAIN, np.arange(size, dtype=np.float32))
    whole = (tmp_path / PLAIN).read_bytes()
    both = str(tmp_path), str(tmp_path)
    answers = []
    places = [*range(min(2048, len(whole) // 2)), *range(max(len(whole) - 2048, len(whole) // 2), len(whole))]
    for place in places[::step]:
        layout_cache.forget()
        one_by_one(both, [FilePair(0, PLAIN, PLAIN, 0)])
        changed = bytearray(whole)
        changed[place] ^= 0x15
        (tmp_path / "changed.pt").write_bytes(changed)
        expected = layout_cache.find(bytes(changed), 1 << 20) is not None
        alone.clear()
        at_once(both, [FilePair(0, "changed.pt", "changed.pt", 0)])
        assert (alone == []) == expected, place
        answers.append(expected)
    assert 0.1 < np.mean(answers) < 0.9  # the elements, names and sums


@pytest.mark.parametrize("change", ["grown", "cut", "gone", "a link", "a FIFO", "nothing"])
@pytest.mark.parametrize("size", [40, LARGE])
def test_a_file_that_changes_after_it_was_measured_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alone: list[str], change: str, size: int
) -> None:
    path = tmp_path / PLAIN
    save(path, np.arange(size, dtype=np.float32))
    whole = path.read_bytes()
    both, pairs = (str(tmp_path), str(tmp_path)), [FilePair(0, PLAIN, PLAIN, 0)]
    one_by_one(both, pairs)
    alone.clear()
    calls = bulk.file_calls()
    assert calls is not None

    def opened(directories: Any, text: int, starts: Any, largest: int, sizes: Any, files: Any) -> None:
        calls.measure(directories, text, starts, largest, sizes)
        if change in ("grown", "cut"):
            path.write_bytes(whole + b"x" if change == "grown" else whole[:-1])
        elif change != "nothing":
            path.unlink()
        if change == "a link":
            (tmp_path / "elsewhere").write_bytes(whole)
            path.symlink_to("elsewhere")
        elif change == "a FIFO":
            os.mkfifo(path)
        calls.open_measured(directories, text, starts, sizes, files)

    monkeypatch.setattr(bulk, "file_calls", lambda: SimpleNamespace(open_regular=opened, close=calls.close))
    found = at_once(both, pairs)
    assert alone == ([] if change == "nothing" else [PLAIN])
    assert_same(found, one_by_one(both, pairs), pairs)
