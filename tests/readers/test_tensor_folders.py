"""Folders of tensor files named by what they hold: SGLang's dumper (files of the real tool), and files as people save them."""

from __future__ import annotations

import json
import os
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st
from pipeline.comparing import compare

from dumpscope.domain.coverage import AGREES
from dumpscope.domain.facts import Origin
from dumpscope.domain.records import RankDump, Role
from dumpscope.domain.result import Answer
from dumpscope.errors import ForeignError, TensorError, UnreadableError
from dumpscope.readers.discover import discover
from dumpscope.readers.formats import read_rank
from dumpscope.readers.recordings.tensor_folder import _parsed
from dumpscope.readers.tensors import tensor_file

ARCHIVE = Path(__file__).parents[1] / "data" / "recordings.tar.xz"
LAYERS = ("embed", "layers.0.attn", "layers.0.mlp", "layers.1.attn", "layers.1.mlp", "head")


@pytest.fixture(scope="module")
def sglang(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recordings")
    with tarfile.open(ARCHIVE) as tar:
        tar.extractall(folder, members=[one for one in tar if one.name.startswith("sglang")])
    return folder / "sglang"


def opened(path: Path) -> RankDump:
    (ref,) = discover(path).ranks
    return read_rank(ref)


def answer(target: Path, golden: Path) -> Answer:
    return compare(target, golden)[0]


def only(found: Answer) -> Origin:
    (origin,) = found.origins
    return origin


def activations(fault: str = "") -> dict[str, np.ndarray]:
    """Each layer's output computed from the one before; the faulty one is 5 % too large."""
    generator = np.random.default_rng(1)
    made = generator.standard_normal((4, 8)).astype(np.float32)
    found = {}
    for name in LAYERS:
        made = np.tanh(made @ generator.standard_normal((8, 8)).astype(np.float32))
        made = made * np.float32(1.05) if name == fault else made
        found[name] = made
    return found


# ---- SGLang, slime, Megatron


def test_files_of_sglangs_dumper_are_steps_of_calls_in_order(sglang: Path) -> None:
    refs = discover(sglang / "golden").ranks
    assert [(ref.step, ref.rank) for ref in refs] == [(0, 0), (1, 0)]
    dump = read_rank(refs[0])
    assert dump.problems == []
    assert dump.nodes.names == [
        f"Module.{label}.Module.forward.0"
        for label in (
            "embed", "layers.0.attn", "layers.0.mlp_act", "layers.0.mlp", "layers.1.attn", "layers.1.mlp_act",
            "layers.1.mlp", "logits",
        )
    ]  # fmt: skip
    assert set(dump.items.shapes) == {(1, 6, 16), (1, 6, 32), (1, 6, 50)}


def test_the_first_tensor_that_differs_is_named_with_where_the_cause_can_be(sglang: Path) -> None:
    origin = only(answer(sglang / "fault", sglang / "golden"))
    assert (origin.node, origin.kind) == ("Module.layers.1.mlp_act.Module.forward.0", "computation")
    assert origin.evidence.startswith("All that was recorded before it agrees; the output differs.")
    assert "between what was saved before and this tensor" in origin.advice
    assert origin.explains == 2
    assert answer(sglang / "golden", sglang / "golden").outcome == AGREES


@pytest.mark.parametrize(
    ("name", "label", "step", "rank", "order", "way"),
    [
        ("forward_pass_id=3___rank=1___name=layer.0.attn___dump_index=7.pt", "layer.0.attn", 3, 1, 7, "forward"),
        ("step=2___rank=0___dump_index=9___name=grad__wte.pt", "wte", 2, 0, 9, "backward"),
        ("rank=0___dump_index=1___name=q___layer_id=4___phase=decode.pt", "layers.4.q[phase=decode]", 0, 0, 1, "forward"),
        ("step=0___name=q___recompute_status=recompute.pt", "q[recompute_status=recompute]", 0, None, None, "forward"),
        ("007_layers.2.mlp.npy", "layers.2.mlp", 0, None, 7, "forward"),
        ("layers.2.mlp.npy", "layers.2.mlp", 0, None, None, "forward"),
        ("Pass00012.pt", "Pass00012", 12, None, 0, "forward"),
    ],
)  # fmt: skip
def test_names_of_files_tell_step_rank_order_and_call(
    name: str, label: str, step: int, rank: int | None, order: int | None, way: str
) -> None:
    file = _parsed(name, 0)
    assert (file.label, file.step, file.rank, file.order, file.way) == (label, step, rank, order, way)


@given(st.text(max_size=80))
def test_any_name_of_a_file_can_be_parsed(name: str) -> None:
    assert _parsed(f"{name}.pt", 0).label or not name


def test_ranks_of_one_folder_are_told_apart(tmp_path: Path) -> None:
    for rank in (0, 1):
        for index, name in enumerate(("a", "b")):
            torch.save(
                {"value": torch.ones(2) * rank, "meta": {"rank": rank}},
                tmp_path / f"step=0___rank={rank}___dump_index={index}___name={name}.pt",
            )
    refs = discover(tmp_path).ranks
    assert [ref.rank for ref in refs] == [0, 1]
    assert [len(read_rank(ref).nodes) for ref in refs] == [2, 2]


def test_a_pass_of_sglang_holds_the_results_of_its_modules(tmp_path: Path) -> None:
    for fault in ("", "layers.0.mlp"):
        folder = tmp_path / f"run{len(fault)}" / "TP0_PP0_Rank0_pid77"
        folder.mkdir(parents=True)
        for number in (0, 1):
            torch.save(
                {name: torch.from_numpy(array) for name, array in activations(fault).items()},
                folder / f"Pass0000{number}.pt",
            )
    refs = discover(tmp_path / "run0").ranks
    assert [ref.step for ref in refs] == [0, 1]
    assert read_rank(refs[0]).nodes.names[1] == "Module.layers.0.attn.Module.forward.0"
    assert only(answer(tmp_path / "run12", tmp_path / "run0")).node == "Module.layers.0.mlp.Module.forward.0"


# ---- plain folders


def saved(folder: Path, kind: str, fault: str = "") -> Path:
    """One run, saved as people do."""
    folder.mkdir()
    arrays = activations(fault)
    if kind == "npz":
        np.savez(folder / "acts.npz", **arrays)
        return folder / "acts.npz"
    for number, (name, array) in enumerate(arrays.items()):
        path = folder / (f"{number:03}_{name}" if kind == "numbers" else name)
        if kind == "index":
            torch.save(torch.from_numpy(array), f"{path}.pt")
        else:
            np.save(f"{path}.npy", array)
            os.utime(f"{path}.npy", ns=(10**18 + number * 10**9,) * 2)
    if kind == "index":
        (folder / "order.txt").write_text("\n".join(LAYERS))
    return folder


@pytest.mark.parametrize("kind", ["numbers", "times", "index", "npz"])
def test_the_order_of_calls_is_found_and_the_first_wrong_layer_named(tmp_path: Path, kind: str) -> None:
    golden, fault = saved(tmp_path / "golden", kind), saved(tmp_path / "fault", kind, "layers.0.mlp")
    dump = opened(golden)
    assert dump.problems == []
    assert [name.removeprefix("Module.").partition(".Module")[0] for name in dump.nodes.names] == list(LAYERS)
    origin = only(answer(fault, golden))
    assert origin.node == "Module.layers.0.mlp.Module.forward.0"


def test_without_any_order_that_of_names_is_taken_and_said(tmp_path: Path) -> None:
    folder = saved(tmp_path / "run", "times")
    for path in folder.iterdir():
        os.utime(path, ns=(10**18,) * 2)
    (problem,) = opened(folder).problems
    assert problem.kind == "order"
    assert "order.txt" in problem.message


def test_inputs_and_outputs_of_a_call_are_put_together(tmp_path: Path) -> None:
    for number, name in enumerate(
        ("0_a.input", "1_a.output", "2_b_input_0", "3_b_input_1", "4_b_output", "5_a.input", "6_a.output")
    ):
        np.save(tmp_path / f"{name}.npy", np.full(3, number))
    dump = opened(tmp_path)
    assert dump.nodes.names == [
        f"Module.{name}" for name in ("a.Module.forward.0", "b.Module.forward.0", "a.Module.forward.1")
    ]
    assert [(Role(role).name, dump.items.paths[code]) for role, code in zip(dump.items.role, dump.items.path, strict=True)] == [
        ("INPUT", "0"), ("OUTPUT", "0"), ("INPUT", "0"), ("INPUT", "1"), ("OUTPUT", "0"), ("INPUT", "0"), ("OUTPUT", "0"),
    ]  # fmt: skip


def test_compressed_arrays_and_many_types_are_read(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.npz", x=np.arange(6, dtype=np.int64).reshape(2, 3), y=np.float16(2))
    loaded = tensor_file.load(tmp_path / "a.npz::x", root=tmp_path)
    assert loaded.dtype == "torch.int64"
    assert loaded.array.tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(TensorError, match="no tensor 'z'"):
        tensor_file.load(tmp_path / "a.npz::z", root=tmp_path)


def test_an_array_of_objects_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.array([{"a": 1}], dtype=object), y=np.ones(2))
    dump = opened(tmp_path / "a.npz")
    (problem,) = dump.problems
    assert problem.kind == "tensor_unreadable"
    assert "a.npz::x" in problem.message
    assert [dump.nodes.names[node] for node in dump.items.node] == ["Module.y.Module.forward.0"]


@pytest.mark.parametrize(
    "names",
    [
        ("model.safetensors",),
        ("model-00001-of-00002.safetensors", "model.safetensors.index.json"),
        ("pytorch_model.bin",),
        ("__0_0.distcp", ".metadata"),
    ],
)
def test_a_checkpoint_is_no_dump(tmp_path: Path, names: tuple[str, ...]) -> None:
    for name in names:
        (tmp_path / name).write_bytes(b"{}")
    with pytest.raises(UnreadableError):
        discover(tmp_path)


def test_one_tensor_alone_and_the_tensors_of_another_dump_are_still_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones(2))
    with pytest.raises(ForeignError) as one:
        discover(tmp_path)
    assert one.value.kind == "tensor"
    for number in (0, 1):
        torch.save(torch.ones(2), tmp_path / f"Functional.relu.{number}.forward.output.0.pt")
    with pytest.raises(UnreadableError):
        discover(tmp_path)


def test_an_index_that_lacks_a_name_says_so(tmp_path: Path) -> None:
    folder = saved(tmp_path / "run", "index")
    (folder / "order.txt").unlink()
    (folder / "order.json").write_text(json.dumps(list(LAYERS[1:])))
    (problem,) = opened(folder).problems
    assert problem.kind == "missing"
    assert "'embed.pt'" in problem.message
