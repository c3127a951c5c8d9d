"""Where NaN and infinity come from, told from the extrema of one dump."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from dumpscope.analysis.overflow.births import Overflow, find_overflow
from dumpscope.readers import discover, read_rank


def tensor(high: float = 1.0, low: float = -1.0, norm: float | None = 2.0, **more: Any) -> dict[str, Any]:
    return {
        "type": "torch.Tensor", "dtype": "torch.float32", "shape": [2, 3], "Max": high, "Min": low, "Mean": 0.0,
        "Norm": norm, "requires_grad": False, **more,
    }  # fmt: skip


def call(inputs: list[Any], outputs: list[Any], kwargs: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"input_args": inputs, "input_kwargs": kwargs or {}, "output": outputs, **more}


def found(folder: Path, data: dict[str, Any], construct: dict[str, Any] | None = None) -> Overflow:
    head = {"task": "statistics", "level": "mix", "framework": "pytorch", "dump_data_dir": None, "data": data}
    (folder / "dump.json").write_text(json.dumps(head, indent=1))
    (folder / "stack.json").write_text(
        json.dumps(
            {"0": [[name for name in data if "forward" in name], ["File train.py, line 3, in step, \n x = f(x)"]]}
        )
    )
    (folder / "construct.json").write_text(json.dumps(construct or {}))
    return find_overflow(read_rank(discover(folder).ranks[0]))


GOOD = tensor()
NAN = tensor(math.nan, math.nan)
POS = tensor(math.inf, -1.0)
NEG = tensor(1.0, -math.inf)


def parts(result: Overflow) -> dict[str, str]:
    return {finding.node: finding.part for finding in result.findings}


def test_a_non_finite_output_of_finite_inputs_is_an_origin_and_the_rest_propagates(tmp_path: Path) -> None:
    result = found(
        tmp_path,
        {
            "Torch.exp.0.forward": call([GOOD], [POS]),
            "Torch.sub.0.forward": call([POS, GOOD], [NAN]),
            "Torch.relu.0.forward": call([NAN], [NAN]),
            "Torch.add.0.forward": call([GOOD], [GOOD]),
        },
    )
    assert parts(result) == {
        "Torch.exp.0.forward": "origin", "Torch.sub.0.forward": "propagated", "Torch.relu.0.forward": "propagated",
    }  # fmt: skip
    assert result.first is not None
    assert (result.first.node, result.first.level, result.first.outputs) == (
        "Torch.exp.0.forward",
        "critical",
        ("inf",),
    )
    assert result.first.items == ("Torch.exp.0.forward.output.0",)
    assert "train.py" in result.first.stack[0]
    assert (result.checked, result.unknown) == (4, 0)


def test_a_mask_asked_for_and_the_softmax_behind_it_are_normal(tmp_path: Path) -> None:
    result = found(
        tmp_path,
        {
            "Tensor.masked_fill.0.forward": call([GOOD, {"type": "float", "value": -math.inf}], [NEG]),
            "Torch.add.0.forward": call([NEG, GOOD], [NEG]),
            "Functional.softmax.0.forward": call([NEG], [GOOD]),
        },
    )
    assert parts(result) == {
        "Tensor.masked_fill.0.forward": "intended", "Torch.add.0.forward": "intended",
        "Functional.softmax.0.forward": "absorbed",
    }  # fmt: skip
    assert result.first is None
    assert {finding.level for finding in result.findings} == {"medium"}


def test_a_fully_masked_row_is_laid_to_the_mask(tmp_path: Path) -> None:
    result = found(
        tmp_path,
        {
            "Tensor.masked_fill.0.forward": call([GOOD, {"type": "float", "value": -math.inf}], [NEG]),
            "Functional.softmax.0.forward": call([NEG], [NAN]),
        },
    )
    assert result.first is not None
    assert (result.first.node, result.first.part) == ("Functional.softmax.0.forward", "origin")
    assert "Tensor.masked_fill.0.forward" in result.first.evidence
    assert "mask" in result.first.advice


def test_nan_that_comes_from_outside_is_an_input_or_a_weight(tmp_path: Path) -> None:
    data = {"Torch.relu.0.forward": call([NAN], [NAN])}
    first = found(tmp_path, data).first
    assert first is not None
    assert (first.part, "an input" in first.evidence) == ("input", True)
    module = {"Module.fc.Linear.forward.0": call([GOOD], [NAN], parameters={"weight": NAN})}
    first = found(tmp_path, module).first
    assert first is not None
    assert (first.part, "a parameter" in first.evidence) == ("input", True)


def test_a_module_around_an_origin_only_contains_it(tmp_path: Path) -> None:
    names = {
        "Torch.exp.0.forward": call([GOOD], [POS]),
        "Module.a.b.Exp.forward.0": call([GOOD], [POS]),
        "Module.a.Block.forward.0": call([GOOD], [POS]),
    }
    tree = {
        "Torch.exp.0.forward": "Module.a.b.Exp.forward.0", "Module.a.b.Exp.forward.0": "Module.a.Block.forward.0",
        "Module.a.Block.forward.0": None,
    }  # fmt: skip
    assert list(parts(found(tmp_path, names, tree)).values()) == ["origin", "contains", "contains"]


def test_two_independent_origins_need_no_finite_past(tmp_path: Path) -> None:
    result = found(tmp_path, {"Torch.exp.0.forward": call([GOOD], [POS]), "Torch.log.0.forward": call([GOOD], [NAN])})
    assert [finding.part for finding in result.causes] == ["origin", "origin"]


@pytest.mark.parametrize("api", ["empty", "empty_like", "empty_strided"])
def test_uninitialised_memory_is_no_finding(tmp_path: Path, api: str) -> None:
    assert found(tmp_path, {f"Torch.{api}.0.forward": call([], [NAN])}).findings == []


def test_a_buffer_that_a_message_will_overwrite_is_no_finding(tmp_path: Path) -> None:
    result = found(
        tmp_path,
        {
            "Distributed.recv.0.forward": call([NAN], [GOOD]),
            "Distributed.irecv.0.forward": call([], [GOOD], {"tensor": NAN}),
            "Distributed.all_gather_into_tensor.0.forward": call([NAN, GOOD], [GOOD]),
        },
    )
    assert result.findings == []


def test_a_norm_that_overflows_on_finite_data_is_no_finding(tmp_path: Path) -> None:
    assert found(tmp_path, {"Torch.add.0.forward": call([GOOD], [tensor(3e38, 1.0, math.inf)])}).findings == []


def test_hundredfold_growth_is_noted_but_is_no_cause(tmp_path: Path) -> None:
    result = found(tmp_path, {"Torch.mul.0.forward": call([GOOD], [tensor(500.0, -1.0, 900.0)])})
    (finding,) = result.findings
    assert (finding.part, finding.level, result.first) == ("growth", "high", None)


def test_an_infinite_argument_without_effect_is_no_finding(tmp_path: Path) -> None:
    data = {"Torch.clamp.0.forward": call([GOOD], [GOOD], {"max": {"type": "float", "value": math.inf}})}
    assert found(tmp_path, data).findings == []


def test_a_text_argument_that_says_inf_is_text(tmp_path: Path) -> None:
    data = {"Torch.norm.0.forward": call([GOOD, {"type": "str", "value": "inf"}], [POS])}
    assert parts(found(tmp_path, data)) == {"Torch.norm.0.forward": "origin"}


def test_nodes_without_extrema_are_counted_as_unknown(tmp_path: Path) -> None:
    unsaid = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "md5": "0123abcd", "requires_grad": False}
    result = found(tmp_path, {"Torch.add.0.forward": call([unsaid], [unsaid])})
    assert (result.checked, result.unknown, result.findings) == (0, 1, [])


def test_a_backward_call_shows_the_line_of_its_forward_call(tmp_path: Path) -> None:
    data = {
        "Torch.exp.0.forward": call([GOOD], [GOOD]),
        "Torch.exp.0.backward": {"input": [GOOD], "output": [NAN]},
    }
    first = found(tmp_path, data).first
    assert first is not None
    assert first.node == "Torch.exp.0.backward"
    assert "train.py" in first.stack[0]


def test_a_derivative_that_is_not_finite_names_the_forward_that_is(tmp_path: Path) -> None:
    data = {"Torch.sqrt.0.forward": call([GOOD], [GOOD]), "Torch.sqrt.0.backward": {"input": [GOOD], "output": [POS]}}
    first = found(tmp_path, data).first
    assert first is not None
    assert first.forward == "Torch.sqrt.0.forward"
    assert "Torch.sqrt.0.forward holds none, so it was born in the backward pass" in first.evidence
    assert "epsilon" in first.advice


def test_a_backward_after_a_forward_that_broke_is_not_said_to_have_begun_it(tmp_path: Path) -> None:
    data = {"Torch.sqrt.0.forward": call([GOOD], [NAN]), "Torch.sqrt.0.backward": {"input": [GOOD], "output": [NAN]}}
    assert all("born" not in finding.evidence for finding in found(tmp_path, data).findings)


LIMITS = [
    ("float16", 65504.0), ("bfloat16", 3.3895313892515355e38), ("float32", 3.4028234663852886e38),
    ("float64", 1.7976931348623157e308),
]  # fmt: skip


def full(dtype: str, high: float = 1.0, low: float = -1.0) -> dict[str, Any]:
    return tensor(high, low, dtype=f"torch.{dtype}")


@pytest.mark.parametrize(("dtype", "limit"), LIMITS)
def test_a_result_clipped_at_the_limit_of_its_dtype_is_an_origin(tmp_path: Path, dtype: str, limit: float) -> None:
    data = {
        "Torch.matmul.0.forward": call([full(dtype)], [full(dtype, limit)]),
        "Torch.add.0.forward": call([full(dtype, limit)], [full(dtype, limit)]),
        "Torch.mul.0.forward": call([full(dtype)], [full(dtype, 0.99 * limit)]),
    }
    result = found(tmp_path, data)
    assert parts(result) == {"Torch.matmul.0.forward": "origin", "Torch.add.0.forward": "propagated"}
    assert result.first is not None
    assert (result.first.level, result.first.outputs) == ("critical", ("limit",))
    assert "clipped" in result.first.advice


@pytest.mark.parametrize(("dtype", "limit"), LIMITS)
def test_a_mask_of_the_most_negative_number_is_normal(tmp_path: Path, dtype: str, limit: float) -> None:
    data = {
        "Tensor.masked_fill.0.forward": call(
            [full(dtype), {"type": "float", "value": -limit}], [full(dtype, low=-limit)]
        ),
        "Tensor.add.0.forward": call([full(dtype, low=-limit)], [full(dtype, low=-math.inf)]),
        "Functional.softmax.0.forward": call([full(dtype, low=-math.inf)], [full(dtype)]),
    }
    result = found(tmp_path, data)
    assert result.first is None
    assert list(parts(result).values()) == ["intended", "intended", "absorbed"]


def test_a_limit_among_the_arguments_does_not_excuse_nan(tmp_path: Path) -> None:
    data = {"Torch.clamp.0.forward": call([GOOD, {"type": "float", "value": 65504.0}], [NAN])}
    assert parts(found(tmp_path, data)) == {"Torch.clamp.0.forward": "origin"}


@pytest.mark.parametrize(("dtype", "limit"), [("float8_e4m3fn", 448.0), ("float8_e5m2", 57344.0)])
def test_fp8_at_its_limit_is_normal_unless_the_input_was_larger(tmp_path: Path, dtype: str, limit: float) -> None:
    scaled = {"Tensor.to.0.forward": call([tensor(limit, -1.0, limit)], [full(dtype, limit)])}
    assert found(tmp_path, scaled).findings == []
    clipped = {"Tensor.to.0.forward": call([tensor(2 * limit, -1.0, limit)], [full(dtype, limit)])}
    (finding,) = found(tmp_path, clipped).findings
    assert (finding.part, finding.level) == ("saturated", "medium")
    assert "amax" in finding.advice
    assert found(tmp_path, clipped).first is None


def test_an_empty_rank_has_nothing_to_tell(tmp_path: Path) -> None:
    result = found(tmp_path, {})
    assert (result.findings, result.checked) == ([], 0)


@pytest.mark.parametrize("name", ["golden", "stat_golden", "conv_L1", "weird_mix", "microbatch", "dist2_stat_golden"])
def test_healthy_real_dumps_have_no_cause(dumps: Path, name: str) -> None:
    for ref in discover(dumps / name).ranks:
        assert find_overflow(read_rank(ref)).first is None


def test_a_saved_variable_is_judged_without_talk_of_inputs(dumps: Path) -> None:
    (file,) = (dumps / "debug_save_stat" / "step0").glob("*/debug.json")
    first = find_overflow(read_rank(discover(file).ranks[0])).first
    assert first is not None
    assert first.part == "origin"
    assert "input" not in first.evidence
