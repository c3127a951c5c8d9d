"""The first origin of every real fault is the true one, and healthy pairs have none (truth: README beside the dumps)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from dumpscope.domain.facts import Class, Method, Verdict
from dumpscope.domain.options import Options
from pipeline.comparing import compare

FAULTS = [
    ("target_fault", "golden", 0, "Functional.softmax.1.forward", "computation"),
    ("stat_fault", "stat_golden", 0, "Functional.softmax.1.forward", "computation"),
    ("md5_fault", "md5_golden", 0, "Functional.softmax.1.forward", "computation"),
    ("xor_fault", "xor_golden", 0, "Functional.softmax.1.forward", "computation"),
    ("target_fault_gelu_arg", "golden", 0, "Functional.gelu.1.forward", "configuration"),
    ("target_fault_weight", "golden", 0, "Functional.linear.6.forward", "weight"),
    ("stat_fault_weight", "stat_golden", 0, "Functional.linear.6.forward", "weight"),
    ("target_fault_bwd", "golden", 0, "Functional.layer_norm.3.backward", "computation"),
    ("stat_fault_bwd", "stat_golden", 0, "Functional.layer_norm.3.backward", "computation"),
    ("target_nan", "golden", 0, "Functional.gelu.0.forward", "overflow"),
    ("stat_nan", "stat_golden", 0, "Functional.gelu.0.forward", "overflow"),
    ("target_nan_mask", "golden", 0, "Tensor.masked_fill.1.forward", "input"),
    ("dist2_stat_fault", "dist2_stat_golden", 1, "Tensor.__add__.0.forward", "structure"),
    ("dist2_md5_fault", "dist2_md5_golden", 1, "Tensor.__add__.0.forward", "structure"),
    ("dist2_tensor_fault", "dist2_tensor_golden", 1, "Tensor.__add__.0.forward", "structure"),
]

HEALTHY = [
    ("golden", "golden"),
    ("target_renamed", "golden"),
    ("target_bf16", "golden"),
    ("stat_bf16", "stat_golden"),
    ("md5_bf16", "md5_golden"),
    ("cfg_L1_stat", "stat_golden"),
    ("cfg_L0_stat", "stat_golden"),
    ("cfg_risk_all", "stat_golden"),
    ("cfg_risk_core", "stat_golden"),
    ("cfg_precision_high", "stat_golden"),
    ("cfg_noextra", "stat_golden"),
    ("cfg_data_mode_bwd", "stat_golden"),
    ("golden", "stat_golden"),
    ("md5_golden", "stat_golden"),
    ("xor_golden", "md5_golden"),
]


@pytest.mark.parametrize(("target", "golden", "rank", "node", "kind"), FAULTS)
def test_the_only_origin_is_the_true_node(
    dumps: Path, target: str, golden: str, rank: int, node: str, kind: str
) -> None:
    answer, _ = compare(dumps / target, dumps / golden)
    assert [(o.step, o.rank, o.node, o.kind) for o in answer.origins] == [(0, rank, node, kind)]
    assert answer.origins[0].evidence
    assert answer.origins[0].advice
    assert any("/home/user/train/" in frame for frame in answer.origins[0].stack)


@pytest.mark.parametrize(("target", "golden", "rank", "node", "kind"), FAULTS)
def test_swapping_the_sides_names_the_same_node(
    dumps: Path, target: str, golden: str, rank: int, node: str, kind: str
) -> None:
    answer, _ = compare(dumps / golden, dumps / target)
    assert [(o.rank, o.node) for o in answer.origins][:1] == [(rank, node)]


@pytest.mark.parametrize(("target", "golden"), HEALTHY)
def test_a_healthy_pair_has_no_origin(dumps: Path, target: str, golden: str) -> None:
    answer, _ = compare(dumps / target, dumps / golden)
    assert answer.origins == []


def test_extra_calls_are_listed_as_structure_and_every_value_agrees(dumps: Path) -> None:
    answer, units = compare(dumps / "target_extra_op", dumps / "golden")
    assert [origin.kind for origin in answer.origins] == ["structure"]
    assert answer.counts.no == 0
    assert answer.counts.unmatched_golden == 0
    extra = [
        units[0].target.nodes.names[t]
        for t, cls in zip(units[0].pairs.target, units[0].node_opinions.cls, strict=True)
        if cls in (Class.STRUCTURAL, Class.ORIGIN)
    ]
    api = [name for name in extra if name.endswith("forward") and not name.startswith("Module")]
    assert sorted(name.split(".")[1] for name in api) == ["__add__", "__mul__", "gelu", "linear"]
    assert "layers.1.mlp" in " ".join(answer.origins[0].stack) or answer.origins[0].node in api


@pytest.mark.parametrize(
    ("golden", "agree"), [("stat_golden", " All values agree after the calls are aligned."), ("cfg_structure", "")]
)
def test_a_call_in_place_of_another_is_laid_to_the_side_that_made_it(
    dumps: Path, tmp_path: Path, golden: str, agree: str
) -> None:
    shutil.copytree(dumps / golden, tmp_path / "target")
    for file in (tmp_path / "target").rglob("*.json"):
        file.write_text(file.read_text().replace("Functional.gelu.1.", "Functional.silu.0."))
    answer, _ = compare(tmp_path / "target", dumps / golden)
    assert [origin.kind for origin in answer.origins] == ["structure"]
    assert answer.origins[0].evidence == (
        "1 call exists only in the target: Functional.silu.0.forward. "
        f"1 call exists only in the golden: Functional.gelu.1.forward.{agree}"
    )


def test_inputs_known_by_their_extremes_alone_are_said_to_be_so(dumps: Path, tmp_path: Path) -> None:
    """Other token ids between the same largest and smallest one look like a wrong embedding."""
    shutil.copytree(dumps / "stat_golden", tmp_path / "target")
    (file,) = (tmp_path / "target").rglob("dump.json")
    dump = json.loads(file.read_text())
    for name in ("Functional.embedding.0.forward", "Module.tok.Embedding.forward.0"):
        for output in dump["data"][name]["output"]:
            output["Mean"] += 0.1
            output["Norm"] *= 1.1
    file.write_text(json.dumps(dump))
    answer, _ = compare(tmp_path / "target", dumps / "stat_golden")
    (origin,) = answer.origins
    assert origin.node == "Functional.embedding.0.forward"
    assert "For input.0 the dump keeps only the extremes" in origin.evidence
    assert origin.confidence < 0.6
    whole, _ = compare(dumps / "stat_fault", dumps / "stat_golden")
    assert "extremes" not in whole.origins[0].evidence


def test_a_dump_without_values_allows_a_comparison_of_structure(dumps: Path) -> None:
    for sides in (("cfg_structure", "stat_golden"), ("stat_golden", "cfg_structure")):
        answer, _ = compare(*(dumps / side for side in sides))
        assert (answer.mode, answer.origins) == ("structure", [])


def test_a_kernel_fault_leaves_its_own_backward_a_receiver(dumps: Path) -> None:
    _, units = compare(dumps / "target_fault", dumps / "golden")
    names = units[0].target.nodes.names
    backward = names.index("Functional.softmax.1.backward")
    assert units[0].node_opinions.cls[backward] == Class.PROPAGATED


def test_other_precision_is_said_and_no_item_is_no(dumps: Path) -> None:
    answer, _ = compare(dumps / "target_bf16", dumps / "golden")
    assert any("Precision differs" in sentence for sentence in answer.settings)
    assert answer.counts.no == 0


def test_a_renamed_module_is_matched_and_labelled(dumps: Path) -> None:
    answer, units = compare(dumps / "target_renamed", dumps / "golden")
    assert answer.counts.unmatched_target == answer.counts.unmatched_golden == 0
    assert sorted(set(units[0].pairs.method.tolist())) == [Method.EXACT, Method.RENAMED]
    assert set(units[0].item_opinions.verdict.tolist()) == {Verdict.YES}


def test_the_first_no_of_the_fault_is_its_output(dumps: Path) -> None:
    answer, _ = compare(dumps / "target_fault", dumps / "golden")
    assert answer.first_no is not None
    assert answer.first_no.item == "Functional.softmax.1.forward.output.0"
    assert "times the floor" in answer.first_no.reason


@pytest.mark.parametrize("summary", ["stat", "md5", "tensor"])
def test_the_first_no_is_that_of_the_rank_that_showed_it_earliest(dumps: Path, summary: str) -> None:
    answer, _ = compare(dumps / f"dist2_{summary}_fault", dumps / f"dist2_{summary}_golden")
    assert answer.first_no is not None
    assert (answer.first_no.rank, answer.first_no.node) == (1, "Functional.layer_norm.0.forward")


def test_at_module_level_only_the_enclosing_module_is_named(dumps: Path) -> None:
    answer, _ = compare(dumps / "stat_fault", dumps / "cfg_L0_stat")
    assert [origin.node for origin in answer.origins] == ["Module.layers.1.attn.Attn.forward.0"]
    assert "not dumped" in answer.origins[0].evidence


@pytest.mark.parametrize(
    "name",
    sorted(
        {
            "cfg_L0_stat", "cfg_L1_stat", "cfg_structure", "checkpoint", "conv_L0", "conv_L1", "conv_mix_stat",
            "crash_stat", "crash_tensor", "debug_save_md5", "debug_save_tensor", "microbatch", "modellist", "types_L1",
            "types_L1_md5", "types_L1_stat", "weird_L0", "weird_L1", "weird_mix", "target_nan", "target_nan_mask",
        }
    ),
)  # fmt: skip
def test_a_dump_agrees_with_itself(dumps: Path, name: str) -> None:
    answer, _ = compare(dumps / name, dumps / name)
    assert answer.counts.no == answer.counts.warning == 0
    assert answer.counts.unmatched_target == answer.counts.unmatched_golden == answer.counts.unreadable == 0
    assert answer.origins == []


@pytest.mark.parametrize("policy", ["ptdbg", "msprobe"])
def test_the_origin_does_not_depend_on_the_policy(dumps: Path, policy: str) -> None:
    answer, _ = compare(dumps / "target_fault", dumps / "golden", Options(policy=policy))
    assert [origin.node for origin in answer.origins] == ["Functional.softmax.1.forward"]
    assert answer.policy == policy


@pytest.mark.parametrize(("target", "golden"), [("crash_stat", "stat_golden"), ("stat_golden", "crash_stat")])
def test_a_side_without_nodes_leaves_the_other_unmatched(dumps: Path, target: str, golden: str) -> None:
    answer, _ = compare(dumps / target, dumps / golden)
    assert answer.counts.nodes == 163
    assert answer.counts.unmatched_target + answer.counts.unmatched_golden == 503
    assert any("ended before stop" in problem.message for problem in answer.problems)
