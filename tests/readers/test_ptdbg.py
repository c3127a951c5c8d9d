"""ptdbg dumps of every generation become the same columns as the msprobe dump they were made from."""

from __future__ import annotations

import json
import os
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dumpscope.domain.records import Direction, Kind, NodeKind, RankDump, Role, State, item_name
from dumpscope.errors import UnreadableError
from dumpscope.readers import discover, open_dump, read_rank
from dumpscope.readers.tensors import tensor_file
from dumpscope_format.naming import canonical
from readers.ptdbg_dumps import FORMS, convert, convert_dump

A = ["Functional_relu_0_forward_input.0", 0, [], "torch.float32", [2], [1.0, -1.0, 0.0, 1.5]]
OUT = ["Functional_relu_0_forward_output", 0, [], "torch.float32", [2], [1.0, 0.0, 0.5, 1.0]]
STACK = ["Functional_relu_0_forward_stack_info", [["/net.py", "3", "forward", "return F.relu(x)"]]]


def rank_of(folder: Path) -> Path:
    return next(iter(sorted((folder / "step0").iterdir())))


def write(path: Path, *lines: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def save(folder: Path, *names: str, dtype: str = "float32") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        np.save(folder / f"{name}.npy", np.array([1.0, -1.0], dtype))


def read(path: Path) -> RankDump:
    (ref,) = discover(path).ranks
    return read_rank(ref)


def kinds(dump: RankDump) -> list[str]:
    return [problem.kind for problem in dump.problems]


def names(dump: RankDump) -> list[str]:
    return [item_name(dump, item) for item in range(len(dump.items))]


def values(dump: RankDump) -> dict[tuple[str, Role, str], tuple[Any, ...]]:
    """What a dump says of each value, by places that all forms share."""
    items = dump.items
    found = {}
    for item in range(len(items)):
        path = items.paths[items.path[item]] or "0"
        key = (canonical(dump.nodes.names[items.node[item]]), Role(int(items.role[item])), path)
        found[key] = (
            items.kind[item],
            items.dtypes[items.dtype[item]] if items.dtype[item] >= 0 else "",
            items.shapes[items.shape[item]] if items.shape[item] >= 0 else (),
            items.values[items.value[item]] if items.value[item] >= 0 and items.kind[item] == Kind.SCALAR else "",
        )
    return found


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["golden", "target_bf16", "types_L1", "weird_L1"])
def test_a_converted_dump_says_what_the_real_one_says(dumps: Path, tmp_path: Path, form: str, name: str) -> None:
    source = rank_of(dumps / name)
    mine = read(convert(source, tmp_path / "rank0", form=form).parent)
    real = read(source)
    assert kinds(mine) == (["missing"] if name == "types_L1" else [])  # tensors without data
    calls = [node for node, kind in enumerate(real.nodes.kind) if kind == NodeKind.API]
    assert [canonical(node) for node in mine.nodes.names] == [real.nodes.names[node] for node in calls]
    labels = [mine.nodes.labels[code] for code in mine.nodes.label]
    assert labels == [real.nodes.labels[real.nodes.label[node]] for node in calls]
    assert mine.nodes.index.tolist() == real.nodes.index[calls].tolist()
    assert mine.nodes.direction.tolist() == real.nodes.direction[calls].tolist()
    ours, theirs = values(mine), values(real)
    shared = ours.keys() & theirs.keys()
    assert len(shared) > 0.9 * sum(role != Role.KWARG and node in set(real.nodes.names) for node, role, _ in ours)
    assert {key: ours[key] for key in shared} == {key: theirs[key] for key in shared}
    assert mine.header.layout == f"ptdbg {form}"
    assert (mine.header.level, mine.header.framework) == ("L1", "pytorch")
    if any(item >= 0 for item in mine.items.data_name):
        assert mine.header.task == "tensor"


def test_names_are_shown_as_they_were_written(dumps: Path, tmp_path: Path) -> None:
    path = convert(rank_of(dumps / "golden"), tmp_path, form="2.3")
    written = [line[0] for line in map(json.loads, path.read_text().splitlines()) if len(line) > 2]
    assert names(read(path)) == written
    dotted = convert(rank_of(dumps / "golden"), tmp_path / "dotted", form="6.0", summary="statistics")
    written = [line[0] for line in map(json.loads, dotted.read_text().splitlines()) if len(line) > 2]
    assert names(read(dotted)) == written


@pytest.mark.parametrize("stacks", ["after", "before"])
@pytest.mark.parametrize("form", ["2.3", "6.0"])
def test_stacks_are_found_before_and_after_the_values(dumps: Path, tmp_path: Path, stacks: str, form: str) -> None:
    source = rank_of(dumps / "golden")
    mine = read(convert(source, tmp_path / "rank0", form=form, stacks=stacks).parent)
    real = read(source)
    of = {
        name: real.nodes.stacks[code]
        for name, code in zip(real.nodes.names, real.nodes.stack, strict=True)
        if code >= 0
    }
    assert {canonical(name) for name, code in zip(mine.nodes.names, mine.nodes.stack, strict=True) if code >= 0} == {
        name for name in of if name.startswith(("Functional", "Tensor", "Torch"))
    }
    for name, code in zip(mine.nodes.names, mine.nodes.stack, strict=True):
        if code < 0:
            continue
        mine_frames = [" ".join(frame.split()).replace(" ,", ",") for frame in mine.nodes.stacks[code]]
        real_frames = [" ".join(frame.split()).replace(" ,", ",") for frame in of[canonical(name)]]
        assert mine_frames == real_frames
    assert mine.tree.inferred
    assert any("/forward#" in name for name in mine.tree.names)


def test_frames_of_the_tool_itself_make_no_modules(tmp_path: Path) -> None:
    tool = ["/site/ptdbg_ascend/hook_module/wrap_torch.py", "9", "forward", "return f(*args)"]
    path = write(tmp_path / "dump.pkl", A, OUT, [STACK[0], [tool, *STACK[1]]])
    dump = read(path)
    assert dump.tree.names[1:] == ["net.py/forward#0"]
    assert len(dump.nodes.stacks[0]) == 2


@pytest.mark.parametrize("form", FORMS)
def test_tensors_are_those_of_the_real_dump(dumps: Path, tmp_path: Path, form: str) -> None:
    mine = read(convert(rank_of(dumps / "target_bf16"), tmp_path / "rank0", form=form).parent)
    real = read(rank_of(dumps / "target_bf16"))
    assert mine.header.data_dir is not None
    assert real.header.data_dir is not None
    seen = 0
    files = {names(real)[i]: real.items.data_names[code] for i, code in enumerate(real.items.data_name) if code >= 0}
    for item, code in enumerate(mine.items.data_name):
        node = canonical(mine.nodes.names[mine.items.node[item]])
        word = "output" if mine.items.role[item] == Role.OUTPUT else "input"
        name = f"{node}.{word}.{mine.items.paths[mine.items.path[item]] or 0}"
        if code >= 0 and name in files:
            seen += 1
            one = tensor_file.load(Path(mine.header.data_dir) / mine.items.data_names[code], root=mine.header.data_dir)
            other = tensor_file.load(Path(real.header.data_dir) / files[name], root=real.header.data_dir)
            assert np.array_equal(one.array.astype("float64"), other.array.astype("float64"), equal_nan=True)
    assert seen > 100


def test_faq_error_14_both_types_of_a_widened_tensor_are_recorded(tmp_path: Path) -> None:
    line = ["Functional_relu_0_forward_input.0", 0, [], "torch.bfloat16", [2], [1.0, -1.0, 0.0, 1.5]]
    half = ["Functional_relu_0_forward_output", 0, [], "torch.float16", [2], [1.0, -1.0, 0.0, 1.5]]
    path = write(tmp_path / "dump.pkl", line, half)
    save(tmp_path / "dump", line[0])
    save(tmp_path / "dump", half[0], dtype="float16")
    dump = read(path)
    assert [dump.items.dtypes[code] for code in dump.items.dtype] == ["torch.bfloat16", "torch.float16"]
    assert [dump.items.values[code] if code >= 0 else None for code in dump.items.value] == [
        '{"file_dtype":"torch.float32"}', None,
    ]  # fmt: skip


def test_what_statistics_lack_is_absent_and_what_is_no_number_is_no_number(tmp_path: Path) -> None:
    lines = [
        ["a_0_forward_input.0", 0, [], "torch.int64", [], [3, 3, 3, "Nan"]],
        ["a_0_forward_input.1", 0, [], "torch.bool", [4], [[], [], [], "Nan"]],
        ["a_0_forward_input.2", 1, [], "torch.float32", [4], [1.0, float("nan"), float("inf")]],
        ["a_0_forward_input.3", 1, [], "<class 'bool'>", "[]", [True, True, True]],
        ["a_0_forward_input.5.0.1", 1, [], "<class 'float'>", "[]", [float("nan")] * 3],
    ]
    dump = read(write(tmp_path / "dump.pkl", *lines))
    f, n, i, x = State.FINITE, State.NAN, State.POS_INF, State.ABSENT
    assert dump.items.stat_state[:3].tolist() == [[f, f, f, x], [x, x, x, x], [f, n, i, x]]
    assert dump.items.stats[0, :3].tolist() == [3, 3, 3]
    assert dump.items.kind.tolist() == [Kind.TENSOR] * 3 + [Kind.SCALAR] * 2
    assert [dump.items.values[code] for code in dump.items.value[3:]] == ["true", '"nan"']
    assert [dump.items.paths[code] for code in dump.items.path] == ["0", "1", "2", "3", "5.0.1"]


def test_checksums_are_read_as_checksums(dumps: Path, tmp_path: Path) -> None:
    source = rank_of(dumps / "golden")
    dump = read(convert(source, tmp_path, form="6.0", summary="md5"))
    assert (dump.header.summary, dump.header.task, dump.header.data_dir) == ("md5", "statistics", None)
    tensors = dump.items.kind == Kind.TENSOR
    assert (dump.items.hash[tensors] >= 0).all()
    assert (dump.items.stat_state[tensors] == State.ABSENT).all()


@pytest.mark.parametrize(
    ("name", "label", "kind"),
    [
        ("Tensor___add___0_forward", "Tensor.__add__", NodeKind.API),
        ("Tensor_add__0_forward", "Tensor.add_", NodeKind.API),
        ("Aten_convolution.default_0_forward", "Aten.convolution.default", NodeKind.API),
        ("Module_Linear_0_forward", "Linear", NodeKind.MODULE),
        ("layers.0.fc.Linear.0.forward", "layers.0.fc.Linear", NodeKind.MODULE),
        ("my_loss_0_forward", "my_loss", NodeKind.MODULE),
    ],
)
def test_names_of_every_source_are_understood(tmp_path: Path, name: str, label: str, kind: NodeKind) -> None:
    mark = "." if name.endswith(".forward") else "_"
    dump = read(write(tmp_path / "dump.pkl", [f"{name}{mark}input.0", *A[1:]], [f"{name}{mark}output", *OUT[1:]]))
    assert dump.nodes.names == [name]
    assert (dump.nodes.labels, dump.nodes.kind.tolist()) == ([label], [kind])
    assert dump.nodes.direction.tolist() == [Direction.FORWARD]
    assert dump.header.level == ("L1" if kind == NodeKind.API else "L0")


def test_what_a_collective_received_is_of_the_same_call_as_what_it_gave(tmp_path: Path) -> None:
    lines = [
        ["Distributed_all_reduce_0_pre_forward_input.0", *A[1:]],
        ["Distributed_all_reduce_0_forward_output", *OUT[1:]],
    ]
    dump = read(write(tmp_path / "dump.pkl", *lines))
    assert dump.nodes.names == ["Distributed_all_reduce_0_forward"]
    assert dump.items.role.tolist() == [Role.INPUT, Role.OUTPUT]


def test_a_name_that_stands_twice_is_kept_twice(tmp_path: Path) -> None:
    path = write(tmp_path / "dump.pkl", A, OUT, STACK, A, OUT, STACK, A)
    save(tmp_path / "dump", A[0], OUT[0])
    dump = read(path)
    assert dump.nodes.names == [f"Functional_relu_0_forward{again}" for again in ("", "#2", "#3")]
    assert np.bincount(dump.items.node).tolist() == [2, 2, 1]
    assert dump.nodes.stack.tolist() == [0, 0, -1]
    assert kinds(dump) == ["repeated"]
    assert [item >= 0 for item in dump.items.data_name.tolist()] == [False, False, False, False, True]
    assert names(dump)[2] == "Functional_relu_0_forward#2_input.0"


def test_stacks_before_the_values_stay_with_their_own_repetition(tmp_path: Path) -> None:
    other = [STACK[0], [["/other.py", "9", "forward", None]]]
    dump = read(write(tmp_path / "dump.pkl", STACK, A, other, A))
    assert np.bincount(dump.items.node).tolist() == [1, 1]
    assert dump.nodes.stack.tolist() == [0, 1]


def test_faq_error_8_arrays_without_records_are_told_from_their_names(dumps: Path, tmp_path: Path) -> None:
    path = convert(rank_of(dumps / "golden"), tmp_path / "rank0")
    whole = read(path)
    for age, name in enumerate(dict.fromkeys(item for item in names(whole))):
        file = path.with_suffix("") / f"{name}.npy"
        if file.exists():
            os.utime(file, ns=(age * 1000, age * 1000))
    path.unlink()
    for folder in (tmp_path, tmp_path / "rank0", tmp_path / "rank0" / "dump"):
        dump = read(folder)
        filed = [
            node
            for node, name in enumerate(whole.nodes.names)
            if (whole.items.data_name[whole.items.node == node] >= 0).any()
        ]
        assert dump.nodes.names == [whole.nodes.names[node] for node in filed]
        assert set(names(dump)) == {names(whole)[i] for i in np.flatnonzero(whole.items.data_name >= 0)}
        assert kinds(dump) == ["missing"]
        assert "OFF" in dump.problems[0].message
        assert dump.header.task == "tensor"


def test_faq_error_8_files_past_the_end_of_a_torn_index_are_taken_in(tmp_path: Path) -> None:
    path = write(tmp_path / "dump.pkl", A)
    save(tmp_path / "dump", A[0], OUT[0], "Torch_add_0_forward_input.1", "notes")
    dump = read(path)
    assert sorted(names(dump)) == sorted([A[0], OUT[0], "Torch_add_0_forward_input.1"])
    assert dump.nodes.names[0] == "Functional_relu_0_forward"
    assert [(problem.kind, problem.message[:14]) for problem in dump.problems] == [("missing", "2 tensor files")]


def test_records_without_their_file_are_counted(tmp_path: Path) -> None:
    path = write(tmp_path / "dump.pkl", A, OUT)
    save(tmp_path / "dump", A[0])
    dump = read(path)
    assert kinds(dump) == ["missing"]
    assert dump.items.data_name.tolist() == [0, -1]


@pytest.mark.parametrize("old", [True, False])
def test_overflow_files_of_a_rank_are_one_dump_in_the_order_of_their_numbers(tmp_path: Path, old: bool) -> None:
    """faq: each finding has its own file and folder, ptdbg 2.3 with five fields a line."""
    stems = (
        ["Overflow_info_20230609_010203_1", "Overflow_info_20230609_010203_2", "Overflow_info_20230609_010209_10"]
        if old
        else ["Torch_mul_0_forward_1", "Functional_relu_0_forward_2", "Torch_add_0_backward_10"]
    )
    for stem in stems:
        lines = [[*A[:1], 101, [], *A[3:5]], "", [*OUT[:1], 101, [], *OUT[3:5]]] if old else [[A[0], 101, *A[2:]], OUT]
        text = "".join((json.dumps(line) if line else "") + "\n" for line in [STACK, *lines])
        (tmp_path / "rank0").mkdir(exist_ok=True)
        (tmp_path / "rank0" / f"{stem}.pkl").write_text(text)
        save(tmp_path / "rank0" / stem, A[0], OUT[0])
    dump = read(tmp_path)
    assert dump.problems == []
    assert dump.header.task == "overflow_check"
    assert dump.header.layout == ("ptdbg 2.3" if old else "ptdbg 4.0")
    assert dump.nodes.names == [f"Functional_relu_0_forward{again}" for again in ("", "#2", "#3")]
    assert dump.nodes.stack.tolist() == [0, 0, 0]
    files = [dump.items.data_names[code] for code in dump.items.data_name]
    assert files[::2] == [f"{stem}/{A[0]}.npy" for stem in stems]
    assert dump.header.data_dir is not None
    for file in files:
        assert tensor_file.load(Path(dump.header.data_dir) / file, root=dump.header.data_dir).shape == (2,)
    alone = read(tmp_path / "rank0" / f"{stems[1]}.pkl")
    assert alone.nodes.names == ["Functional_relu_0_forward"]
    assert alone.items.data_name.tolist() == [0, 1]


# -- finding it ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "where",
    ["ptdbg_dump_v2.3/rank3", "ptdbg_dump_v4.0/rank3", "tag_v6.0/step2/rank3", "step2/tag_v4.0/rank3", "step2/rank3"],
)
@pytest.mark.parametrize("stem", ["dump", "api_stack_dump", "list_dump", "my_run"])
def test_every_layout_of_folders_is_found(tmp_path: Path, where: str, stem: str) -> None:
    path = write(tmp_path / "out" / where / f"{stem}.pkl", A, OUT)
    save(path.with_suffix(""), A[0], OUT[0])
    (path.parent / "compare_data.py").write_text("print()")
    steps = 2 if "step2" in where else 0
    for place in (tmp_path, tmp_path / "out", path.parent.parent, path.parent, path):
        layout = discover(place)
        assert layout.problems == []
        ((ref),) = layout.ranks
        assert (ref.rank, ref.tensors) == (3, str(path.with_suffix("")))
        if place in (tmp_path, tmp_path / "out"):
            assert ref.step == steps
        assert len(read_rank(ref).nodes) == 1


def test_a_file_beside_a_folder_with_a_time_is_a_dump(tmp_path: Path) -> None:
    path = write(tmp_path / "npu_dump.pkl", A, OUT)
    save(tmp_path / "npu_dump_20230104_134", A[0])
    save(tmp_path / "npu_dump_20230104_134340", A[0], OUT[0])
    save(tmp_path / "npu_dump_other", A[0])
    for place in (tmp_path, path):
        (ref,) = discover(place).ranks
        assert ref.tensors == str(tmp_path / "npu_dump_20230104_134340")
        assert (ref.rank, ref.label) == (None, "")


def test_two_flat_dumps_in_a_folder_have_to_be_named(tmp_path: Path) -> None:
    write(tmp_path / "npu.pkl", A)
    bench = write(tmp_path / "bench.pkl", A)
    with pytest.raises(UnreadableError, match=r"bench\.pkl, npu\.pkl"):
        discover(tmp_path)
    assert discover(bench).ranks[0].dump_json == str(bench)


def test_of_several_files_of_a_rank_the_newest_is_read_and_the_others_are_told(tmp_path: Path) -> None:
    old = write(tmp_path / "rank0" / "dump.pkl", A)
    new = write(tmp_path / "rank0" / "api_stack_dump.pkl", A)
    os.utime(old, ns=(1, 1))
    layout = discover(tmp_path)
    assert [ref.dump_json for ref in layout.ranks] == [str(new)]
    assert [problem.kind for problem in layout.problems] == ["several_runs"]
    assert "dump.pkl" in layout.problems[0].message


@pytest.mark.parametrize("numbers", [[4711], [104_711, 104_713], [4711, 4712, 4713], [9, 100_123]])
def test_folders_named_by_process_ids_count_by_their_order(tmp_path: Path, numbers: list[int]) -> None:
    for number in numbers:
        write(tmp_path / "tag" / f"rank{number}" / "dump.pkl", A)
    layout = discover(tmp_path)
    processes = min(numbers) >= 300
    told = [problem for problem in layout.problems if problem.kind == "process"]
    assert bool(told) == processes
    assert layout.rank_numbers == (list(range(len(numbers))) if processes else numbers)
    assert [ref.label for ref in layout.ranks] == [f"rank{number}" for number in numbers]
    if processes:
        assert f"rank{numbers[0]}" in told[0].message


@pytest.mark.parametrize("numbers", [[0, 1, 10], [1024, 1025], [0], [7], [299]])
def test_numbers_that_a_job_may_have_are_ranks_in_natural_order(tmp_path: Path, numbers: list[int]) -> None:
    for number in numbers:
        write(tmp_path / f"rank{number}" / "dump.pkl", A)
    layout = discover(tmp_path)
    assert layout.rank_numbers == numbers
    assert layout.problems == []


@pytest.mark.parametrize("pack", ["zip", "tar"])
def test_an_archive_of_one_is_a_dump(dumps: Path, tmp_path: Path, pack: str) -> None:
    folder = convert_dump(dumps / "stat_golden", tmp_path / "made", form="6.0", summary="statistics")
    archive = tmp_path / f"dump.{pack}"
    if pack == "zip":
        with zipfile.ZipFile(archive, "w") as book:
            for file in folder.rglob("*"):
                book.write(file, file.relative_to(tmp_path))
    else:
        with tarfile.open(archive, "w:gz") as tar:
            tar.add(folder, "made")
    layout = open_dump(archive, tmp_path / "work")
    assert layout.steps == [0]
    assert len(read_rank(layout.ranks[0]).nodes) > 50


def test_other_files_of_that_ending_are_no_dumps(tmp_path: Path) -> None:
    (tmp_path / "weights.pkl").write_bytes(b"\x80\x04K\x05.")
    np.save(tmp_path / "weights.npy", np.zeros(3))
    with pytest.raises(UnreadableError, match="holds no dump"):
        discover(tmp_path)
    with pytest.raises(UnreadableError, match="is a saved tensor or model, no dump"):
        discover(tmp_path / "weights.pkl")


def test_links_out_of_the_dump_are_not_followed(tmp_path: Path) -> None:
    save(tmp_path / "secret", A[0])
    path = write(tmp_path / "dump" / "rank0" / "dump.pkl", A)
    path.with_suffix("").symlink_to(tmp_path / "secret")
    (path.parent / "list_dump.pkl").symlink_to(write(tmp_path / "else.pkl", A, OUT))
    layout = discover(tmp_path / "dump")
    (ref,) = layout.ranks
    assert (ref.dump_json, ref.tensors) == (str(path), None)
    assert read_rank(ref).header.data_dir is None


def damage_text(path: Path) -> None:
    text = path.read_text()
    path.write_text(text[:1000] + text[1100:-50])


def damage_file(path: Path) -> None:
    file = next(path.with_suffix("").glob("*relu*" if list(path.with_suffix("").glob("*relu*")) else "*"))
    file.write_bytes(file.read_bytes()[:20])


@pytest.mark.parametrize(("damage", "kind"), [(damage_text, "unreadable"), (damage_file, None)])
def test_damage_costs_only_itself(
    dumps: Path, tmp_path: Path, damage: Callable[[Path], None], kind: str | None
) -> None:
    path = convert(rank_of(dumps / "golden"), tmp_path)
    whole = len(read(path).nodes)
    damage(path)
    dump = read(path)
    assert len(dump.nodes) >= whole - 1
    if kind:
        assert {kind, "truncated"} <= set(kinds(dump))
        assert any("line" in problem.loc and "column" in problem.loc for problem in dump.problems)


def test_a_stack_only_dump_holds_calls_and_no_values(tmp_path: Path) -> None:
    dump = read(write(tmp_path / "rank0" / "stack_dump.pkl", STACK))
    assert (len(dump.nodes), len(dump.items), dump.header.task) == (1, 0, "structure")
    assert dump.nodes.stack.tolist() == [0]


def test_an_empty_file_says_that_nothing_was_recorded(tmp_path: Path) -> None:
    path = tmp_path / "rank0" / "dump.pkl"
    write(path)
    assert kinds(read(path)) == ["no_data"]
    save(tmp_path / "rank0" / "dump", A[0])
    assert read(tmp_path).nodes.names == ["Functional_relu_0_forward"]
    shutil.rmtree(tmp_path / "rank0" / "dump")
