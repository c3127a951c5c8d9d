"""A layer_mapping pairs modules and the calls of functions inside them, whatever framework words stand before the functions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dumpscope.domain.facts import METHOD_WORDS
from dumpscope.domain.options import Options
from dumpscope.domain.records import RankDump
from dumpscope.match import match
from dumpscope.readers import discover, read_rank

MAPPING = """
TopLayer:
  net: model
Embed:
  logical_or: __or__
  reduce.all_reduce: all_reduce
Layer:
  attention: self_attention
Attention:
  flash_score: core.npu_fusion_attention
Norm:
  RmsNorm: npu_rms_norm
"""

TARGET = {
    "Mint.logical_or.0.forward": "Cell.net.words.Embed.forward.0",
    "Distributed.all_reduce.0.forward": "Cell.net.words.reduce.Reduce.forward.0",
    "Cell.net.words.reduce.Reduce.forward.0": "Cell.net.words.Embed.forward.0",
    "Cell.net.words.Embed.forward.0": None,
    "Primitive.norm.RmsNorm.0.forward": "Cell.net.layers.0.norm.Norm.forward.0",
    "Cell.net.layers.0.norm.Norm.forward.0": "Cell.net.layers.0.Layer.forward.0",
    "Mint.cos.0.forward": "Cell.net.layers.0.attention.Attention.forward.0",
    "Functional.flash_score.0.forward": "Cell.net.layers.0.attention.Attention.forward.0",
    "Cell.net.layers.0.attention.Attention.forward.0": "Cell.net.layers.0.Layer.forward.0",
    "Cell.net.layers.0.Layer.forward.0": None,
    "Functional.flash_score.0.backward": "Cell.net.layers.0.attention.Attention.backward.0",
}
GOLDEN = {
    "Tensor.__or__.0.forward": "Module.model.words.Embed.forward.0",
    "Distributed.all_reduce.0.forward": "Module.model.words.Embed.forward.0",
    "Module.model.words.Embed.forward.0": None,
    "NPU.npu_rms_norm.0.forward": "Module.model.layers.0.norm.RMSNorm.forward.0",
    "Module.model.layers.0.norm.RMSNorm.forward.0": "Module.model.layers.0.Layer.forward.0",
    "Torch.cos.0.forward": "Module.model.layers.0.self_attention.Attention.forward.0",
    "NPU.npu_fusion_attention.0.forward": "Module.model.layers.0.self_attention.core.Flash.forward.0",
    "Module.model.layers.0.self_attention.core.Flash.forward.0": "Module.model.layers.0.self_attention.Attention.forward.0",
    "Module.model.layers.0.self_attention.Attention.forward.0": "Module.model.layers.0.Layer.forward.0",
    "Module.model.layers.0.Layer.forward.0": None,
    "NPU.npu_fusion_attention.0.backward": "Module.model.layers.0.self_attention.core.Flash.backward.0",
}
"""Names of nodes, each with its parent."""

PARTNERS = {
    "Mint.logical_or.0.forward": "Tensor.__or__.0.forward",
    "Distributed.all_reduce.0.forward": "Distributed.all_reduce.0.forward",
    "Cell.net.words.Embed.forward.0": "Module.model.words.Embed.forward.0",
    "Primitive.norm.RmsNorm.0.forward": "NPU.npu_rms_norm.0.forward",
    "Mint.cos.0.forward": "Torch.cos.0.forward",
    "Functional.flash_score.0.forward": "NPU.npu_fusion_attention.0.forward",
    "Functional.flash_score.0.backward": "NPU.npu_fusion_attention.0.backward",
    "Cell.net.layers.0.attention.Attention.forward.0": "Module.model.layers.0.self_attention.Attention.forward.0",
    "Cell.net.layers.0.Layer.forward.0": "Module.model.layers.0.Layer.forward.0",
}


def written(
    folder: Path, parents: dict[str, str | None], framework: str, numbers: dict[str, float] | None = None
) -> RankDump:
    """A dump of these nodes. numbers: largest value of the input of a node, 1 unless given"""
    kind = "mindspore.Tensor" if framework == "mindspore" else "torch.Tensor"
    step = folder / "step0" / "rank0"
    step.mkdir(parents=True)
    data: dict[str, Any] = {}
    for name in parents:
        top = (numbers or {}).get(name, 1.0)
        record = {
            "type": kind,
            "dtype": "torch.float32",
            "shape": [4],
            "Max": top,
            "Min": 0.0,
            "Mean": 0.5,
            "Norm": 1.0,
        }
        sides = ("input", "output") if ".backward" in name else ("input_args", "output")
        data[name] = {side: [record] for side in sides}
    head = {"task": "statistics", "level": "mix", "framework": framework, "dump_data_dir": None, "data": data}
    (step / "dump.json").write_text(json.dumps(head))
    (step / "stack.json").write_text("{}")
    (step / "construct.json").write_text(json.dumps(parents))
    return read_rank(discover(folder).ranks[0])


def partners(target: RankDump, golden: RankDump, mapping: str) -> tuple[dict[str, str], set[str], list[str]]:
    """(target name -> golden name, words of their methods, messages of problems)."""
    found = match(target, golden, Options(layer_mapping=mapping))
    rows = [
        row for row in zip(found.pairs.target, found.pairs.golden, found.pairs.method, strict=True) if min(row[:2]) >= 0
    ]
    names = {target.nodes.names[t]: golden.nodes.names[g] for t, g, _ in rows}
    return names, {METHOD_WORDS[method] for *_, method in rows}, [problem.message for problem in found.problems]


@pytest.fixture
def sides(tmp_path: Path) -> tuple[RankDump, RankDump]:
    return written(tmp_path / "t", TARGET, "mindspore"), written(tmp_path / "g", GOLDEN, "pytorch")


def test_functions_are_renamed_and_moved_between_modules_as_the_file_says(sides: tuple[RankDump, RankDump]) -> None:
    found, methods, problems = partners(*sides, MAPPING)
    assert found == PARTNERS | {"Cell.net.layers.0.norm.Norm.forward.0": "Module.model.layers.0.norm.RMSNorm.forward.0"}
    assert "mapped" in methods
    assert problems == []


def test_the_table_of_the_root_may_be_called_cell(sides: tuple[RankDump, RankDump]) -> None:
    assert partners(*sides, MAPPING.replace("TopLayer", "Cell")) == partners(*sides, MAPPING)


def test_an_entry_that_names_nothing_is_a_problem_with_its_name(sides: tuple[RankDump, RankDump]) -> None:
    found, _, problems = partners(*sides, MAPPING + "  LayerNorm: npu_layer_norm\nMlp:\n  up: fc1\n")
    assert found == partners(*sides, MAPPING)[0]
    assert [message.partition(" names")[0] for message in problems] == ["Norm: LayerNorm", "Mlp: up"]


def test_a_call_that_only_one_side_makes_does_not_shift_the_others(tmp_path: Path) -> None:
    around = "Module.layers.0.attn.Attn.forward.0"
    target = {f"NPU.npu_fusion.{number}.forward": around for number in range(3)} | {around: None}
    golden = {f"Functional.attention.{number}.forward": around for number in range(2)} | {around: None}
    numbers = {"NPU.npu_fusion.1.forward": 30.0, "NPU.npu_fusion.2.forward": 7.0, "Functional.attention.1.forward": 7.0}
    sides = (
        written(tmp_path / "t", target, "pytorch", numbers),
        written(tmp_path / "g", golden, "pytorch", numbers),
    )
    found, _, _ = partners(*sides, "Attn:\n  npu_fusion: attention\n")
    assert found == {
        "NPU.npu_fusion.0.forward": "Functional.attention.0.forward",
        "NPU.npu_fusion.2.forward": "Functional.attention.1.forward",
        around: around,
    }
