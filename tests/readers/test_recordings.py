"""What other tools recorded, in files that the real tools wrote (`data/make_recordings.py`), opened and compared."""

from __future__ import annotations

import json
import runpy
import tarfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st
from pipeline.comparing import compare

from dumpscope.domain.coverage import AGREES, NOT_FULLY_JUDGED
from dumpscope.domain.facts import Origin
from dumpscope.domain.records import Kind, RankDump, Role, State
from dumpscope.domain.result import Answer
from dumpscope.readers.discover import discover
from dumpscope.readers.formats import read_rank
from dumpscope.readers.recordings.debug_mode import looks_like_log
from dumpscope.readers.recordings.literals import read_literal, split_arguments

ARCHIVE = Path(__file__).parents[1] / "data" / "recordings.tar.xz"


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recordings")
    with tarfile.open(ARCHIVE) as tar:
        tar.extractall(folder)
    return folder


def opened(path: Path) -> RankDump:
    (ref,) = discover(path).ranks
    return read_rank(ref)


def answer(target: Path, golden: Path) -> Answer:
    return compare(target, golden)[0]


def only(found: Answer) -> Origin:
    (origin,) = found.origins
    return origin


def written(folder: Path, text: str) -> Path:
    path = folder / "run.log"
    path.write_text(text)
    return path


# ---- DebugMode


def test_a_debug_mode_log_is_read_with_stacks_modules_and_numbers(recordings: Path) -> None:
    dump = opened(recordings / "debug_mode" / "golden.log")
    assert dump.problems == []
    assert (dump.header.layout, dump.header.level, dump.header.task) == ("DebugMode", "L2", "statistics")
    node = dump.nodes.names.index("Aten.addmm.0.forward")
    assert dump.nodes.stacks[dump.nodes.stack[node]] == (
        "File /job/make_recordings.py, line 47, in forward, \n return self.norm(torch.relu(self.fc(x)) + x)",
    )
    assert dump.tree.names[dump.tree.parent[node]] == "Module.layers.0.fc.Module.forward.0"
    rows = np.flatnonzero(dump.items.node == node)
    assert [dump.items.shapes[code] for code in dump.items.shape[rows]] == [(16,), (80, 16), (16, 16), (80, 16)]
    assert (dump.items.stat_state[rows][:, 3] == State.FINITE).all()  # the sum of magnitudes stands as Norm
    assert (dump.items.stat_state[rows][:, :3] == State.ABSENT).all()


def test_identities_of_a_debug_mode_log_tell_who_made_an_argument(recordings: Path) -> None:
    dump = opened(recordings / "debug_mode" / "golden.log")
    items, names = dump.items, dump.nodes.names
    node = names.index("Aten.relu.0.forward")
    (given_row,) = np.flatnonzero((items.node == node) & (items.role == Role.INPUT))
    made = items.producer[given_row]
    assert names[items.node[made]] == "Aten.addmm.0.forward"
    assert items.role[made] == Role.OUTPUT
    assert (items.producer < np.arange(len(items))).all()


def test_a_changed_factor_is_named_from_debug_mode_logs(recordings: Path) -> None:
    logs = recordings / "debug_mode"
    found = answer(logs / "fault.log", logs / "golden.log")
    origin = only(found)
    assert (origin.node, origin.kind) == ("Aten.mul.Tensor.0.forward", "configuration")
    assert "1.02 in the target and 1.0 in the golden" in origin.evidence
    assert answer(logs / "golden.log", logs / "golden.log").outcome == AGREES


@pytest.mark.parametrize("other", ["plain", "both", "compiled"])
def test_logs_of_the_same_run_with_other_settings_agree(recordings: Path, other: str) -> None:
    logs = recordings / "debug_mode"
    found = answer(logs / f"{other}.log", logs / "golden.log")
    assert (found.origins, found.outcome) == ([], AGREES)


def test_integer_hashes_are_compared_for_equality(recordings: Path) -> None:
    logs = recordings / "debug_mode"
    assert opened(logs / "hash.log").header.summary == "md5"
    assert only(answer(logs / "hash_fault.log", logs / "hash.log")).node == "Aten.mul.Tensor.0.forward"


def test_a_log_without_hashes_says_how_to_get_them(recordings: Path) -> None:
    dump = opened(recordings / "debug_mode" / "nothing.log")
    (problem,) = dump.problems
    assert problem.kind == "no_data"
    assert "log_tensor_hashes(hash_inputs=True)" in problem.message
    same = recordings / "debug_mode" / "nothing.log"
    assert answer(same, same).outcome == NOT_FULLY_JUDGED


def test_a_sum_of_magnitudes_is_never_compared_with_a_norm(recordings: Path) -> None:
    found = answer(recordings / "debug_mode" / "fault.log", recordings / "ours" / "mix")
    assert (found.origins, found.outcome) == ([], NOT_FULLY_JUDGED)


def test_a_log_that_ends_in_the_middle_keeps_what_is_whole(recordings: Path, tmp_path: Path) -> None:
    text = (recordings / "debug_mode" / "golden.log").read_text()
    whole = opened(recordings / "debug_mode" / "golden.log")
    cut = text.index("aten::relu") + 40
    dump = opened(written(tmp_path, text[:cut]))
    assert [problem.kind for problem in dump.problems] == ["truncated"]
    assert dump.nodes.names == whole.nodes.names[: len(dump.nodes)]


def test_a_folder_of_logs_is_one_dump_with_a_rank_for_each(recordings: Path, tmp_path: Path) -> None:
    text = (recordings / "debug_mode" / "golden.log").read_text()
    for name in ("run_rank0.log", "run_rank1.log", "run_rank10.log", "notes.txt"):
        (tmp_path / name).write_text(text if name != "notes.txt" else "learning rate 1e-3\n")
    assert [ref.rank for ref in discover(tmp_path).ranks] == [0, 1, 10]


def test_triton_kernels_have_the_hashes_of_the_lines_below_them(tmp_path: Path) -> None:
    log = (
        "    [nn.Mod (compile)] Net.fc\n"
        "    aten::relu(t: f32[2])  ->  t: f32[2]  # {'hash': 1.0}\n"
        "    [triton] triton_poi_fused_0(in_ptr0=t: bf16[2], out_ptr0=t: f32[2], xnumel=2)\n"
        "      # pre-kernel hashes: {in_ptr0: 2.5, out_ptr0: nan}\n"
        "      # post-kernel hashes: {in_ptr0: 2.5, out_ptr0: 7.25}\n"
    )
    dump = opened(written(tmp_path, log))
    assert dump.problems == []
    assert dump.nodes.names == ["Aten.relu.0.forward", "Triton.triton_poi_fused_0.0.forward"]
    items = dump.items
    rows = np.flatnonzero(items.node == 1)
    named = {(Role(items.role[row]).name, items.paths[items.path[row]]): items.stats[row, 3] for row in rows}
    assert named["KWARG", "in_ptr0"] == 2.5
    assert named["OUTPUT", "out_ptr0"] == 7.25
    assert ("KWARG", "out_ptr0") not in named
    assert ("OUTPUT", "in_ptr0") not in named


def test_lists_missing_values_and_distributed_tensors_are_read(tmp_path: Path) -> None:
    log = (
        "    aten::cat(['t$0: f32[2]', 't$1: f32[3]'], -1)  ->  t$2: f32[5]  # {'input_hash': (([1.0, nan], None), {}), "
        "'hash': inf}\n"
        "    _c10d::all_gather(dt$3: bf16[4, 2]| S(0), reduce=sum)  ->  (None, 't$4: i64[]')\n"
    )
    dump = opened(written(tmp_path, log))
    assert dump.nodes.names == ["Aten.cat.0.forward", "Aten._c10d.all_gather.0.forward"]
    items = dump.items
    assert [items.paths[code] for code in items.path] == ["0.0", "0.1", "1", "0", "0", "reduce", "0", "1"]
    assert items.stat_state[:4, 3].tolist() == [State.FINITE, State.NAN, State.ABSENT, State.POS_INF]
    assert items.kind.tolist()[4:] == [Kind.TENSOR, Kind.SCALAR, Kind.NONE, Kind.TENSOR]
    assert items.values[items.value[4]] == '{"placements":"S(0)"}'


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), max_size=60), max_size=8))
def test_no_line_of_a_log_is_an_error(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    path = tmp_path_factory.getbasetemp() / "any.log"
    path.write_text("\n".join(["  aten::relu(t: f32[2])  ->  t: f32[2]", *("  " + line for line in lines)]))
    assert opened(path).nodes.names[0] == "Aten.relu.0.forward"


@given(
    st.lists(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=5), min_size=1)
)
def test_arguments_are_split_where_python_would(values: list[object]) -> None:
    parts = split_arguments(", ".join(map(repr, values)))
    assert [read_literal(part) for part in parts] == values


def test_only_what_debug_mode_writes_is_taken_for_its_log() -> None:
    assert looks_like_log(b"    aten::mm(t: f32[2])")
    assert not looks_like_log(b"calls aten::mm( twice\n  and then [nn.Mod] nothing")
    assert not looks_like_log(b"  \0aten::mm(")


# ---- torchtitan


def test_a_torchtitan_log_is_read_with_producers_phases_and_places(recordings: Path) -> None:
    dump = opened(recordings / "torchtitan" / "golden")
    assert dump.problems == []
    node = dump.nodes.names.index("Aten.addmm.0.forward")
    assert dump.tree.names[dump.tree.parent[node]] == "Module.layers.0.fc.Module.forward.0"
    assert dump.nodes.stacks[dump.nodes.stack[node]] == ("File data/make_recordings.py, line 47, in <unknown>",)
    (row,) = np.flatnonzero((dump.items.node == node) & (dump.items.role == Role.OUTPUT))
    assert (dump.items.stat_state[row] == State.FINITE).all()
    assert any(name.endswith(".backward") for name in dump.nodes.names)
    relu = dump.nodes.names.index("Aten.relu.0.forward")
    (given_row,) = np.flatnonzero((dump.items.node == relu) & (dump.items.role == Role.INPUT))
    assert dump.items.producer[given_row] == row
    assert (dump.items.stats[given_row] == dump.items.stats[row]).all()


def test_a_changed_factor_is_named_from_torchtitan_logs(recordings: Path) -> None:
    logs = recordings / "torchtitan"
    origin = only(answer(logs / "fault", logs / "golden"))
    assert origin.node == "Aten.mul.0.forward"
    assert "the output differs" in origin.evidence
    assert answer(logs / "golden", logs / "golden").outcome == AGREES


# ---- transformers


def test_a_debug_tree_of_transformers_is_read_as_modules(recordings: Path) -> None:
    dump = opened(recordings / "transformers" / "printed")
    assert dump.problems == []
    node = dump.nodes.names.index("Module.model.layers.1.mlp.act_fn.Module.forward.0")
    assert dump.tree.names[dump.tree.parent[node]] == "Module.model.layers.1.mlp.Module.forward.0"
    ids = dump.nodes.names.index("Module.model.embed_tokens.Module.forward.0")
    row = int(np.flatnonzero(dump.items.node == ids)[0])
    assert dump.items.stats[row].tolist() == [5.0, 0.0, 2.5, pytest.approx(np.sqrt(55))]  # printed whole: 0 to 5


@pytest.mark.parametrize("golden", ["transformers/printed", "transformers/saved", "ours/llama"])
def test_a_wrong_activation_is_named_from_a_debug_tree(recordings: Path, golden: str) -> None:
    """Against another tree, one with files, and our own dump of the same model, which knows the classes of modules."""
    trees = recordings / "transformers"
    assert answer(trees / "printed", recordings / golden).origins == []
    origin = only(answer(trees / "printed_fault", recordings / golden))
    assert origin.node == "Module.model.layers.1.mlp.act_fn.Module.forward.0"
    assert origin.kind == "computation"


def test_the_norm_of_a_debug_tree_follows_from_mean_and_deviation(recordings: Path) -> None:
    printed, ours = opened(recordings / "transformers" / "printed"), opened(recordings / "ours" / "llama")
    norms: list[dict[str, float]] = []
    for dump in (printed, ours):
        outputs = np.flatnonzero((dump.items.role == Role.OUTPUT) & (dump.items.stat_state[:, 3] == State.FINITE))
        names = [
            dump.nodes.names[node].rpartition(".forward")[0].rpartition(".")[0] for node in dump.items.node[outputs]
        ]
        norms.append(dict(zip(names, dump.items.stats[outputs, 3].tolist(), strict=True)))
    common = norms[0].keys() & norms[1].keys()
    assert len(common) > 15
    for name in common:
        assert norms[0][name] == pytest.approx(norms[1][name], rel=2e-4)


def test_a_damaged_debug_tree_says_where(recordings: Path, tmp_path: Path) -> None:
    (source,) = (recordings / "transformers" / "printed").glob("*FULL*")
    (tmp_path / source.name).write_text(source.read_text()[:3000])
    with pytest.raises(Exception, match="is no whole JSON") as error:
        opened(tmp_path)
    assert f"{source.name}:" in str(getattr(error.value, "where", ""))


def test_an_entry_of_a_debug_tree_that_is_no_call_is_left_out(tmp_path: Path) -> None:
    tree = {
        "module_path": "Net", "inputs": None,
        "children": [7, {"module_path": "Net.fc", "inputs": {"args": ["True", "'a'", "Cache(x)"]}, "outputs": "2"}],
    }  # fmt: skip
    (tmp_path / "Net_debug_tree_SUMMARY.json").write_text(json.dumps(tree))
    dump = opened(tmp_path)
    assert [problem.kind for problem in dump.problems] == ["structure"]
    assert dump.nodes.names == ["Module.fc.Module.forward.0"]
    assert dump.items.kind.tolist() == [Kind.SCALAR, Kind.SCALAR, Kind.OPAQUE, Kind.SCALAR]


def test_the_page_of_what_opens_is_what_its_samples_give(tmp_path: Path) -> None:
    module = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "what_opens.py"))
    module["unpack"](tmp_path)
    assert module["PAGE"].read_text() == module["page"](tmp_path), "run: python docs/what_opens.py"
