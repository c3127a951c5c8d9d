"""Experts that ranks share are left out, the rest of the model is compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from dumpscope.domain.options import Options
from dumpscope.pipeline.compare.in_process import compare_layouts
from dumpscope.readers import discover
from parallel.test_joint import tensor

TOKENS, WIDTH = 12, 4


def write_rank(folder: Path, tokens: Any, experts: int, share: slice, scale: float = 1.0) -> None:
    """A layer that deals its tokens out: `experts` of this rank work on the tokens of `share`."""
    rng = np.random.default_rng(3)
    weights = rng.normal(size=(4, WIDTH, WIDTH))
    data: dict[str, Any] = {}
    construct: dict[str, str | None] = {}

    def note(name: str, parent: str | None, taken: list[Any], made: list[Any], weight: Any = None) -> None:
        data[name] = {"input_args": [*map(tensor, taken)], "input_kwargs": {}, "output": [*map(tensor, made)]}
        if weight is not None:
            data[name]["parameters"] = {"weight": tensor(weight)}
        construct[name] = parent

    layer, holder = "Module.layers.0.mlp.MoE.forward.0", "Module.layers.0.mlp.experts.ModuleList.forward.0"
    router = rng.normal(size=(WIDTH, 4))
    note("Functional.linear.0.forward", layer, [tokens, router], [tokens @ router * scale])
    dealt = rng.permutation(rng.normal(size=(TOKENS, WIDTH)))[share]
    for number in range(experts):
        name = f"Module.layers.0.mlp.experts.{number}.Expert.forward.0"
        weight = weights[share.start // (TOKENS // 2) * experts + number]
        note(f"Functional.linear.{number + 1}.forward", name, [dealt, weight], [dealt @ weight])
        note(name, holder, [dealt], [dealt @ weight], weight)
        construct[holder] = layer
    note(layer, None, [tokens], [tokens * 2], router)
    folder.mkdir(parents=True)
    head = {"task": "statistics", "level": "mix", "framework": "pytorch", "dump_data_dir": None}
    (folder / "dump.json").write_text(json.dumps({**head, "data": data}))
    (folder / "construct.json").write_text(json.dumps(construct))
    (folder / "stack.json").write_text("{}")


def write_both(folder: Path, scale: float = 1.0) -> tuple[Path, Path]:
    tokens = np.random.default_rng(1).normal(size=(TOKENS, WIDTH))
    half = TOKENS // 2
    for rank in range(2):
        part = slice(rank * half, (rank + 1) * half)
        write_rank(folder / f"ep2/step0/rank{rank}", tokens[part], 2, part, scale if rank else 1.0)
    write_rank(folder / "whole/step0/rank0", tokens, 4, slice(0, TOKENS))
    return folder / "ep2", folder / "whole"


def test_calls_inside_experts_are_left_out_and_that_is_said(tmp_path: Path) -> None:
    target, golden = map(discover, write_both(tmp_path))
    outcome = compare_layouts(target, golden, Options(parallel="{target: {ep: 2}}"), paths=("t", "g"), jobs=1)
    names = outcome.units[0].target.nodes.names + outcome.units[0].golden.nodes.names
    assert sorted(set(names)) == ["Functional.linear.0.forward", "Module.layers.0.mlp.MoE.forward.0"]
    assert (outcome.answer.counts.no, outcome.answer.counts.unmatched_golden, outcome.answer.origins) == (0, 0, [])
    assert outcome.answer.counts.yes > 4
    assert outcome.answer.joined is not None
    (unit,) = outcome.answer.joined.units
    assert (unit.target.experts, unit.golden.experts) == (8, 8)
    (told,) = [one for one in outcome.answer.problems if one.kind == "experts"]
    assert told.message.startswith(
        "8 calls of the target and 8 of the golden inside experts were left out: tokens are sent"
    )


def test_a_fault_outside_experts_is_found(tmp_path: Path) -> None:
    target, golden = map(discover, write_both(tmp_path, scale=1.5))
    outcome = compare_layouts(target, golden, Options(parallel="{target: {ep: 2}}"), paths=("t", "g"), jobs=1)
    assert [origin.node for origin in outcome.answer.origins] == ["Functional.linear.0.forward"]
