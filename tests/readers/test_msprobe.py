"""Every number of every real dump arrives in the columns, and damage costs only what is damaged."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dumpscope.domain.records import (
    STATISTICS,
    Direction,
    Items,
    Kind,
    NodeKind,
    RankDump,
    RankRef,
    Role,
    State,
    item_name,
)
from dumpscope.errors import UnreadableError
from dumpscope.readers import discover, read_rank

ROLES = {
    "input_args": Role.INPUT,
    "input": Role.INPUT,
    "input_kwargs": Role.KWARG,
    "output": Role.OUTPUT,
    "parameters": Role.PARAMETER,
}


def lone(folder: Path, data: Any, *, debug: bool = False, name: str = "", **head: Any) -> RankDump:
    """Write one file and read it."""
    file = folder / (name or ("debug.json" if debug else "dump.json"))
    whole = {"task": "statistics", "level": "mix", "framework": "pytorch", "dump_data_dir": None, **head, "data": data}
    file.write_text(json.dumps(whole, indent=1))
    return read_rank(discover(file).ranks[0])


def leaves(value: Any, path: str) -> list[tuple[str, Any]]:
    """Independent flattening: (path, record)."""
    if isinstance(value, dict) and not isinstance(value.get("type"), str) and value:
        return [leaf for key, part in value.items() for leaf in leaves(part, f"{path}.{key}" if path else key)]
    if isinstance(value, list) and value:
        return [leaf for at, part in enumerate(value) for leaf in leaves(part, f"{path}.{at}" if path else str(at))]
    return [(path, value)]


def expected(name: str, body: Any, debug: bool) -> list[tuple[Role, str, Any]]:
    if debug:
        return [(Role.DEBUG, *leaf) for leaf in leaves(body, "")]
    if ".parameters_grad" in name:
        return [(Role.GRADIENT, key, records[0]) for key, records in body.items()]
    return [
        (ROLES[key], *leaf)
        for key, value in body.items()
        for part, start in ([(value, "")] if value else [])
        for leaf in leaves(part, start)
    ]


def number(items: Items, item: int, column: int) -> Any:
    state = items.stat_state[item, column]
    if state == State.ABSENT:
        return None
    if (item, column) in items.wide:
        return items.wide[item, column]
    value = float(items.stats[item, column])
    assert state == (
        State.NAN
        if math.isnan(value)
        else State.POS_INF
        if value == math.inf
        else State.NEG_INF
        if value == -math.inf
        else State.FINITE
    )
    return value


def same(one: Any, two: Any) -> bool:
    return one == two or (one is not None and two is not None and math.isnan(one) and math.isnan(two))


def test_every_real_dump_arrives_whole(dumps: Path) -> None:
    """Names, order, leaves and every number, against the standard library's reading of the same file."""
    files = sorted(dumps.glob("*/step*/*/d*.json"))
    assert len(files) > 60
    total = 0
    for file in files:
        dump = read_rank(discover(file).ranks[0])
        truth = json.loads(file.read_text())
        debug = file.name == "debug.json"
        nodes, items = dump.nodes, dump.items
        if truth["data"]:
            assert nodes.names == list(truth["data"])
        want = [
            (at, *leaf) for at, (name, body) in enumerate(truth["data"].items()) for leaf in expected(name, body, debug)
        ]
        assert len(items) == len(want), file
        assert items.node.tolist() == [node for node, *_ in want]
        assert items.role.tolist() == [role for _, role, _, _ in want]
        assert [items.paths[code] for code in items.path] == [path for _, _, path, _ in want]
        for item, (_, _, _, record) in enumerate(want):
            if record is None:
                assert items.kind[item] == Kind.NONE
                continue
            if record == {}:
                assert items.kind[item] == Kind.OPAQUE
                continue
            assert items.types[items.type[item]] == record["type"]
            if "shape" in record:
                assert items.kind[item] == Kind.TENSOR
                assert items.dtypes[items.dtype[item]] == record["dtype"]
                assert items.shapes[items.shape[item]] == tuple(record["shape"])
                assert all(same(number(items, item, at), record.get(key)) for at, key in enumerate(STATISTICS))
                assert items.requires_grad[item] == record.get("requires_grad", -1)
                check = record.get("md5")
                assert (items.hashes[items.hash[item]] if items.hash[item] >= 0 else None) == (
                    None if check is None else str(check)
                )
                if "data_name" in record:
                    assert f"{item_name(dump, item)}.pt" == record["data_name"]
            else:
                assert items.kind[item] == Kind.SCALAR
                value = json.loads(items.values[items.value[item]])
                assert value == record["value"] or value == str(record["value"])
        total += len(items)
        assert dump.header.task == truth["task"]
        assert dump.header.level == truth["level"]
    assert total > 15_000


def test_the_summary_mode_is_seen_from_the_leaves(dumps: Path) -> None:
    modes = {
        name: read_rank(discover(dumps / name).ranks[0]).header.summary
        for name in ("golden", "md5_golden", "xor_golden")
    }
    assert modes == {"golden": "statistics", "md5_golden": "md5", "xor_golden": "xor"}


def test_healthy_dumps_have_no_problems(dumps: Path) -> None:
    for name in (
        "golden",
        "conv_L1",
        "weird_mix",
        "dist2_tensor_fault",
        "types_L1",
        "debug_save_tensor",
        "cfg_structure",
    ):
        for ref in discover(dumps / name).ranks:
            assert read_rank(ref).problems == []


def test_tensor_names_are_found_beside_the_json_and_not_where_it_says(dumps: Path) -> None:
    dump = read_rank(discover(dumps / "golden").ranks[0])
    assert dump.header.data_dir is not None
    assert Path(dump.header.data_dir).parent == Path(dump.ref.folder)
    items = dump.items
    assert all((Path(dump.header.data_dir) / items.data_names[code]).is_file() for code in items.data_name if code >= 0)


def test_stacks_are_stored_once_innermost_first(dumps: Path) -> None:
    dump = read_rank(discover(dumps / "golden").ranks[0])
    truth = json.loads(Path(dump.ref.stack_json or "").read_text())
    wanted = {name: tuple(frames) for names, frames in truth.values() for name in names}
    for node, name in enumerate(dump.nodes.names):
        code = dump.nodes.stack[node]
        assert (dump.nodes.stacks[code] if code >= 0 else None) == wanted.get(name)
    assert len(dump.nodes.stacks) == len(truth)


def test_a_stack_file_of_the_old_form_is_read(tmp_path: Path) -> None:
    (tmp_path / "stack.json").write_text(json.dumps({"Functional.a.0.forward": ["File x, line 1, in f, \n y"]}))
    dump = lone(tmp_path, {"Functional.a.0.forward": {"input_args": [], "input_kwargs": {}, "output": []}})
    assert dump.nodes.stacks[dump.nodes.stack[0]] == ("File x, line 1, in f, \n y",)


def test_a_structure_dump_takes_its_nodes_from_the_tree(dumps: Path) -> None:
    dump = read_rank(discover(dumps / "cfg_structure").ranks[0])
    assert len(dump.nodes) == 174
    assert len(dump.items) == 0
    assert dump.nodes.names[0] == "Functional.embedding.0.forward"


def test_a_killed_run_says_how_many_tensor_files_it_left(dumps: Path) -> None:
    problems = read_rank(discover(dumps / "crash_tensor").ranks[0]).problems
    assert [problem.kind for problem in problems] == ["no_data"]
    assert "12 tensor files" in problems[0].message


def tensor(**over: Any) -> dict[str, Any]:
    return {
        "type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": 1.0, "Min": 0.0, "Mean": 0.5, "Norm": 1.0,
        "requires_grad": False, **over,
    }  # fmt: skip


def body(*inputs: Any, **kwargs: Any) -> dict[str, Any]:
    return {"input_args": list(inputs), "input_kwargs": kwargs, "output": []}


def test_every_word_for_a_number_that_is_not_finite_is_understood(tmp_path: Path) -> None:
    words = ["NaN", "nan", "inf", " inf", "Infinity", "-inf", " -Infinity ", math.nan, math.inf, -math.inf]
    states = [State.NAN, State.NAN, *[State.POS_INF] * 3, *[State.NEG_INF] * 2, State.NAN, State.POS_INF, State.NEG_INF]
    dump = lone(tmp_path, {"Functional.a.0.forward": body(*(tensor(Max=word) for word in words))})
    assert dump.items.stat_state[:, 0].tolist() == states
    assert set(dump.items.stat_state[:, 1].tolist()) == {State.FINITE}
    assert [problem.kind for problem in dump.problems] == ["missing", "missing"]


def test_nan_as_a_number_and_as_a_text_stay_apart_in_values(tmp_path: Path) -> None:
    data = {
        "x.0.debug": [
            {"type": "float", "value": math.nan},
            {"type": "str", "value": "NaN"},
            {"type": "float", "value": -math.inf},
        ]
    }
    items = lone(tmp_path, data, debug=True).items
    assert [items.values[code] for code in items.value] == ['"nan"', '"NaN"', '"-inf"']


def test_integers_that_float64_cannot_hold_stay_exact(tmp_path: Path) -> None:
    large = [2**53 + 1, -(2**63), 2**64 - 1, 10**30, 2**53]
    records = [tensor(dtype="torch.int64", Max=value, Mean=None, Norm=None) for value in large]
    items = lone(tmp_path, {"Functional.a.0.forward": body(*records, {"type": "int", "value": 10**25})}).items
    assert items.wide == {(at, 0): value for at, value in enumerate(large) if abs(value) > 2**53}
    assert items.values[items.value[5]] == str(10**25)
    assert items.stat_state[0].tolist() == [State.FINITE, State.FINITE, State.ABSENT, State.ABSENT]


def test_an_integer_statistic_too_large_for_any_float_is_not_an_infinity(tmp_path: Path) -> None:
    items = lone(tmp_path, {"Functional.a.0.forward": body(tensor(dtype="torch.int64", Max=10**400))}).items
    assert items.stat_state[0, 0] == State.FINITE
    assert items.wide[0, 0] == 10**400


def test_bool_statistics_are_zero_and_one(tmp_path: Path) -> None:
    record = tensor(dtype="torch.bool", Max=True, Min=False, Mean=None, Norm=None)
    items = lone(tmp_path, {"Functional.a.0.forward": body(record)}).items
    assert items.stats[0, :2].tolist() == [1.0, 0.0]
    assert items.stat_state[0].tolist() == [State.FINITE, State.FINITE, State.ABSENT, State.ABSENT]


def test_leaves_of_every_kind_find_their_place(tmp_path: Path) -> None:
    operation = {"class_type": "torch.distributed.P2POp", "tensor": tensor(), "op": "isend", "peer": 1, "tag": 0}
    mesh = tensor(type="torch.distributed.tensor.DTensor", device_mesh=[0, 1], placements=[{"Shard": {"dim": 0}}])
    group = {"type": "torch.ProcessGroup", "group_ranks": [0, 1], "group_id": "0a1b2c3d"}
    data = {
        "Distributed.batch_isend_irecv.0.forward": {
            "input_args": [
                [operation],
                mesh,
                group,
                {},
                None,
                [],
                {"type": "torch.memory_format", "format": "channels_last"},
            ],
            "input_kwargs": {"mask": {"deep": [tensor()]}, "type": {"type": "str", "value": "x"}},
            "output": {"values": tensor(), "indices": [None]},
        },
        "Module.a.B.parameters_grad": {"weight": [tensor()], "odd": [tensor(), tensor()]},
    }
    dump = lone(tmp_path, data)
    items = dump.items
    rows = [
        (int(items.role[at]), items.paths[items.path[at]], Kind(int(items.kind[at])).name, items.types[items.type[at]])
        for at in range(len(items))
    ]
    assert rows == [
        (Role.INPUT, "0.0", "SCALAR", "torch.distributed.P2POp"),
        (Role.INPUT, "0.0.tensor", "TENSOR", "torch.Tensor"),
        (Role.INPUT, "1", "TENSOR", "torch.distributed.tensor.DTensor"),
        (Role.INPUT, "2", "SCALAR", "torch.ProcessGroup"),
        (Role.INPUT, "3", "OPAQUE", "unknown"),
        (Role.INPUT, "4", "NONE", "null"),
        (Role.INPUT, "5", "SCALAR", "list"),
        (Role.INPUT, "6", "SCALAR", "torch.memory_format"),
        (Role.KWARG, "mask.deep.0", "TENSOR", "torch.Tensor"),
        (Role.KWARG, "type", "SCALAR", "str"),
        (Role.OUTPUT, "values", "TENSOR", "torch.Tensor"),
        (Role.OUTPUT, "indices.0", "NONE", "null"),
        (Role.GRADIENT, "weight", "TENSOR", "torch.Tensor"),
        (Role.GRADIENT, "odd.0", "TENSOR", "torch.Tensor"),
        (Role.GRADIENT, "odd.1", "TENSOR", "torch.Tensor"),
    ]
    assert items.values[items.value[0]] == '{"op":"isend","peer":1,"tag":0}'
    assert items.values[items.value[2]] == '{"device_mesh":[0,1],"placements":[{"Shard":{"dim":0}}]}'
    assert items.values[items.value[3]] == '{"group_id":"0a1b2c3d","group_ranks":[0,1]}'
    assert items.values[items.value[7]] == '{"format":"channels_last"}'
    assert item_name(dump, 8) == "Distributed.batch_isend_irecv.0.forward.input.mask.deep.0"
    assert item_name(dump, 12) == "Module.a.B.parameters_grad.weight"


@pytest.mark.parametrize(
    ("record", "what"),
    [
        (tensor(Max=[1]), "Max"), (tensor(Mean={}), "Mean"), (tensor(Min="abc"), "Min"), (tensor(shape="2x3"), "shape"),
        (tensor(shape=[1, -2]), "shape"), (tensor(shape=[1.5]), "shape"), (tensor(dtype=3), "dtype"),
        (tensor(data_name=7), "data_name"),
    ],
)  # fmt: skip
def test_a_field_of_the_wrong_type_is_reported_and_the_rest_kept(
    tmp_path: Path, record: dict[str, Any], what: str
) -> None:
    dump = lone(tmp_path, {"Functional.a.0.forward": body(record, tensor(Max=3.0))})
    assert len(dump.items) == 2
    assert dump.items.stats[1, 0] == 3.0
    wrong = [problem for problem in dump.problems if problem.kind == "wrong_type"]
    assert len(wrong) == 1
    assert what in wrong[0].message
    assert "Functional.a.0.forward" in wrong[0].message


@pytest.mark.parametrize("value", [1, "x", [], [[1]], True])
def test_a_node_that_is_no_object_keeps_its_name(tmp_path: Path, value: Any) -> None:
    dump = lone(tmp_path, {"Functional.a.0.forward": value, "Functional.b.0.forward": body(tensor())})
    assert len(dump.nodes) == 2
    assert len(dump.items) == 1
    assert "wrong_type" in [problem.kind for problem in dump.problems]


def test_of_duplicate_nodes_the_last_is_kept_and_the_rest_stays_aligned(tmp_path: Path) -> None:
    one, two, three = (
        {f"Functional.{name}.0.forward": body(tensor(Max=top))} for name, top in (("a", 1.0), ("b", 2.0), ("a", 3.0))
    )
    inner = ",".join(json.dumps(part)[1:-1] for part in (one, two, three))
    (tmp_path / "dump.json").write_text('{"task": "statistics", "data": {' + inner + "}}")
    dump = read_rank(discover(tmp_path).ranks[0])
    assert dump.nodes.names == ["Functional.b.0.forward", "Functional.a.0.forward"]
    assert dump.items.stats[:, 0].tolist() == [2.0, 3.0]
    assert dump.items.node.tolist() == [0, 1]
    assert "duplicate_key" in [problem.kind for problem in dump.problems]


@pytest.mark.parametrize("depth", [300, 700, 100_000])
def test_deep_nesting_never_ends_the_reader(tmp_path: Path, depth: int) -> None:
    deep = "[" * depth + json.dumps(tensor()) + "]" * depth
    text = (
        '{"data": {"Functional.a.0.forward": {"input_args": '
        + deep
        + '}, "Functional.b.0.forward": {"input_args": [null]}}}'
    )
    (tmp_path / "dump.json").write_text(text)
    dump = read_rank(discover(tmp_path).ranks[0])
    assert "Functional.b.0.forward" in dump.nodes.names
    assert len(dump.items) == (2 if depth < 400 else 1)
    assert ("nesting" in [problem.kind for problem in dump.problems]) == (depth > 400)


def test_a_truncated_dump_keeps_every_complete_node(dumps: Path, tmp_path: Path) -> None:
    source = next((dumps / "golden" / "step0").iterdir())
    whole = (source / "dump.json").read_bytes()
    names = list(json.loads(whole)["data"])
    for part in (0.001, 0.3, 0.77, 0.999):
        cut = whole[: int(len(whole) * part)]
        (tmp_path / "dump.json").write_bytes(cut)
        dump = read_rank(discover(tmp_path).ranks[0])
        complete = sum(f'"{name}": {{'.encode() in cut for name in names)
        assert len(dump.nodes) in (complete, complete - 1)
        assert dump.nodes.names == names[: len(dump.nodes)]
        truncated = [
            problem for problem in dump.problems if problem.kind in ("truncated", "missing") and "byte" in problem.loc
        ]
        assert truncated


def test_missing_side_files_are_problems_and_nothing_more(dumps: Path) -> None:
    dump = read_rank(discover(dumps / "cfg_noextra").ranks[0])
    assert len(dump.nodes) == 163
    assert sorted(problem.loc.rsplit("/", 1)[-1] for problem in dump.problems) == ["construct.json", "stack.json"]
    assert {problem.kind for problem in dump.problems} == {"missing"}


def test_damaged_side_files_cost_only_what_they_hold(dumps: Path, tmp_path: Path) -> None:
    source = next((dumps / "stat_golden" / "step0").iterdir())
    folder = tmp_path / "rank0"
    shutil.copytree(source, folder)
    for name in ("stack.json", "construct.json"):
        file = folder / name
        text = file.read_bytes()
        file.chmod(0o644)
        file.write_bytes(text[: len(text) // 2])
    dump = read_rank(discover(folder).ranks[0])
    assert len(dump.nodes) == 163
    assert len(dump.items) == 503
    assert [problem.kind for problem in dump.problems] == ["truncated", "truncated"]
    assert (dump.nodes.stack >= 0).sum() > 20
    assert not dump.tree.inferred


@pytest.mark.parametrize(
    "text", ["", "[]", "null", '{"Functional.a.0.forward": 5}', '{"0": [["a"], 3]}', '{"a": {"b": 1}}', "\0\0"]
)
def test_side_files_of_any_content_never_end_the_reader(tmp_path: Path, text: str) -> None:
    for name in ("stack.json", "construct.json"):
        (tmp_path / name).write_text(text)
    dump = lone(tmp_path, {"Functional.a.0.forward": body(tensor())})
    assert len(dump.items) == 1


def test_a_pipe_in_place_of_a_side_file_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "dump.json").write_text('{"data": {"Functional.a.0.forward": {}}}')
    ref = RankRef(
        step=0, rank=None, label="", folder=str(tmp_path), dump_json=str(tmp_path / "dump.json"),
        stack_json=str(tmp_path / "pipe"), construct_json=None,
    )  # fmt: skip
    assert [problem.kind for problem in read_rank(ref).problems] == ["missing", "unreadable"]
    with pytest.raises(UnreadableError, match="not a regular file"):
        read_rank(
            RankRef(
                step=0,
                rank=None,
                label="",
                folder=str(tmp_path),
                dump_json=str(tmp_path / "pipe"),
                stack_json=None,
                construct_json=None,
            )
        )


def test_a_tensor_folder_that_links_out_of_the_dump_is_refused(tmp_path: Path) -> None:
    outside = tmp_path / "outside" / "dump_tensor_data"
    outside.mkdir(parents=True)
    folder = tmp_path / "dump" / "step0" / "rank0"
    folder.mkdir(parents=True)
    os.symlink(outside, folder / "dump_tensor_data")
    (folder / "dump.json").write_text('{"data": {"Functional.a.0.forward": {}}}')
    record = tensor(data_name="Functional.a.0.forward.input.0.pt")
    (folder / "dump.json").write_text(json.dumps({"data": {"Functional.a.0.forward": body(record)}}))
    dump = read_rank(discover(tmp_path / "dump").ranks[0])
    assert dump.header.data_dir is None
    assert [problem.kind for problem in dump.problems if problem.loc.endswith("dump_tensor_data")] == ["refused"]


def test_a_refused_stack_file_is_one_problem_of_the_layout_alone(tmp_path: Path) -> None:
    folder = tmp_path / "step0" / "rank0"
    folder.mkdir(parents=True)
    (folder / "dump.json").write_text('{"data": {"Functional.a.0.forward": {}}}')
    (folder / "construct.json").write_text("{}")
    os.mkfifo(folder / "stack.json")
    layout = discover(tmp_path)
    assert [problem.kind for problem in layout.problems] == ["refused"]
    assert read_rank(layout.ranks[0]).problems == []


def test_a_tensor_file_named_by_a_path_does_not_name_its_item(tmp_path: Path) -> None:
    record = {**tensor(), "data_name": "../../../etc/passwd"}
    dump = lone(tmp_path, {"Functional.a.0.forward": body(record)})
    assert item_name(dump, 0) == "Functional.a.0.forward.input.0"


def test_the_stored_tensor_folder_counts_only_where_none_lies_beside_the_json(tmp_path: Path) -> None:
    stored = tmp_path / "elsewhere" / "dump_tensor_data"
    stored.mkdir(parents=True)
    here = tmp_path / "here"
    here.mkdir()
    data = {"Functional.a.0.forward": body(tensor())}
    assert lone(here, data, dump_data_dir=str(stored)).header.data_dir == str(stored)
    ref = discover(here).ranks[0]
    assert read_rank(ref, follow_stored_path=False).header.data_dir is None
    (here / "dump_tensor_data").mkdir()
    assert lone(here, data, dump_data_dir=str(stored)).header.data_dir == str(here / "dump_tensor_data")
    assert lone(stored.parent, data, dump_data_dir="/etc").header.data_dir == str(stored)


def test_kinds_directions_and_micro_steps_are_filled(tmp_path: Path) -> None:
    (tmp_path / "construct.json").write_text(
        json.dumps(
            {
                "megatron_micro_step_number": 1,
                "Functional.a.0.forward": ["Module.m.M.forward.0", 1],
                "Module.m.M.forward.0": [None, 1],
            }
        )
    )
    names = [
        "Functional.a.0.forward",
        "Module.m.M.forward.0",
        "Module.m.M.backward.0",
        "Module.m.M.parameters_grad.2",
        "what",
    ]
    nodes = lone(tmp_path, {name: {} for name in names}).nodes
    assert nodes.kind.tolist() == [NodeKind.API, NodeKind.MODULE, NodeKind.MODULE, NodeKind.GRADIENT, NodeKind.OTHER]
    assert nodes.direction.tolist() == [
        Direction.FORWARD,
        Direction.FORWARD,
        Direction.BACKWARD,
        Direction.BACKWARD,
        Direction.NONE,
    ]
    assert nodes.index.tolist() == [0, 0, 0, 2, -1]
    assert [nodes.labels[code] for code in nodes.label] == ["Functional.a", "m.M", "m.M", "m.M", "what"]
    assert nodes.micro.tolist() == [1, 1, -1, -1, -1]


KEYS = [
    *("type", "value", "dtype", "shape", "Max", "Min", "Mean", "Norm", "requires_grad", "md5", "data_name"),
    *("class_type", "tensor", "input_args", "input_kwargs", "output", "input", "parameters"),
]
NAMES = ["Functional.a.0.forward", "Module.a.B.backward.0", "Module.a.B.parameters_grad.0", "x.0.debug", "y"]
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=3), inner, max_size=9)
    ),
    max_leaves=20,
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from(NAMES), json_values), st.booleans())
def test_records_of_any_content_never_end_the_reader(
    tmp_path_factory: pytest.TempPathFactory, data: dict[str, Any], debug: bool
) -> None:
    folder = tmp_path_factory.mktemp("any", numbered=True)
    dump = lone(folder, data, debug=debug)
    items = dump.items
    assert set(dump.nodes.names) == set(data)
    assert items.stats.shape == items.stat_state.shape == (len(items), 4)
    assert bool(np.isfinite(items.stats[items.stat_state == State.FINITE]).all()) or items.wide
    for code in items.value[items.value >= 0]:
        json.loads(items.values[code], parse_constant=pytest.fail)
    for item in range(len(items)):
        item_name(dump, item)


def test_the_server_side_reader_leaves_torch_alone() -> None:
    code = "import sys, dumpscope.readers; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
