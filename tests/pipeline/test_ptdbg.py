"""Dumps of ptdbg give the true origins: of every generation, against one another, and against msprobe's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from readers.ptdbg_dumps import convert_dump

from dumpscope.domain.facts import Method, Verdict
from dumpscope.domain.options import Options
from dumpscope.domain.records import Role
from dumpscope_format.naming import canonical
from pipeline.comparing import compare

FAULTS = [
    ("target_fault", "golden", 0, "Functional.softmax.1.forward", "computation"),
    ("stat_fault", "stat_golden", 0, "Functional.softmax.1.forward", "computation"),
    ("target_fault_weight", "golden", 0, "Functional.linear.6.forward", "weight"),
    ("stat_fault_weight", "stat_golden", 0, "Functional.linear.6.forward", "weight"),
    ("target_fault_bwd", "golden", 0, "Functional.layer_norm.3.backward", "computation"),
    ("stat_fault_bwd", "stat_golden", 0, "Functional.layer_norm.3.backward", "computation"),
    ("target_nan", "golden", 0, "Functional.gelu.0.forward", "overflow"),
    ("stat_nan", "stat_golden", 0, "Functional.gelu.0.forward", "overflow"),
    ("target_nan_mask", "golden", 0, "Tensor.masked_fill.1.forward", "input"),
    ("dist2_stat_fault", "dist2_stat_golden", 1, "Tensor.__add__.0.forward", "structure"),
]
FORMS = [
    ("2.3", "2.3"),
    ("4.0", "4.0"),
    ("6.0", "6.0"),
    ("2.3", "6.0"),
    ("6.0", "4.0"),
    ("4.0", None),
    (None, "2.3"),
    ("6.0", None),
]


@pytest.fixture(scope="module")
def made(dumps: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Path]:
    """Folders by dump and form, made when asked for."""

    class Made(dict[tuple[str, str], Path]):
        def __missing__(self, key: tuple[str, str | None]) -> Path:
            name, form = key
            if form is None:
                return dumps / name
            found = self[name, form] = convert_dump(dumps / name, tmp_path_factory.mktemp("ptdbg"), form=form)
            return found

    return Made()


@pytest.mark.parametrize("forms", FORMS)
@pytest.mark.parametrize(("target", "golden", "rank", "node", "kind"), FAULTS)
def test_the_only_origin_is_the_true_call(
    made: dict[tuple[str, str | None], Path], target: str, golden: str, rank: int, node: str, kind: str,
    forms: tuple[str | None, str | None],
) -> None:  # fmt: skip
    answer, units = compare(made[target, forms[0]], made[golden, forms[1]], Options(steps=(0,)))
    found = [(o.step, o.rank, canonical(o.node), o.kind) for o in answer.origins if o.step == 0]
    assert found == [(0, rank, node, kind)]
    if forms[0] in ("2.3", "4.0"):
        assert answer.origins[0].node.endswith("_forward" if node.endswith("forward") else "_backward")
    assert answer.counts.unreadable == 0
    if target.startswith("target"):
        assert {unit.mode for unit in units} == {"tensor"}


@pytest.mark.parametrize("forms", [("2.3", "6.0"), ("4.0", None), (None, "6.0")])
def test_a_dump_in_another_form_has_no_origin_and_its_calls_match_exactly(
    made: dict[tuple[str, str | None], Path], forms: tuple[str | None, str | None]
) -> None:
    answer, units = compare(made["golden", forms[0]], made["golden", forms[1]], Options(steps=(0,)))
    assert answer.origins == []
    assert (answer.counts.no, answer.counts.warning) == (0, 0)
    pairs = units[0].pairs
    both = (pairs.target >= 0) & (pairs.golden >= 0)
    assert set(pairs.method[both].tolist()) == {int(Method.EXACT)}
    assert int(both.sum()) == 99
    assert int((units[0].item_opinions.verdict == Verdict.YES).sum()) > 300


def test_arguments_by_name_are_put_to_their_names(made: dict[tuple[str, str | None], Path]) -> None:
    """6.0 counts them behind the others; msprobe keeps the names."""
    _, (unit, *_) = compare(made["golden", "6.0"], made["golden", None], Options(steps=(0,)))
    items = unit.items
    both = (items.target >= 0) & (items.golden >= 0)
    left = unit.target.items.paths
    right = unit.golden.items.paths
    named = {
        (left[unit.target.items.path[t]], right[unit.golden.items.path[g]])
        for t, g in zip(items.target[both].tolist(), items.golden[both].tolist(), strict=True)
        if right[unit.golden.items.path[g]] and not right[unit.golden.items.path[g]][0].isdigit()
    }
    assert ("1", "dim") in named
    assert all(number.isdigit() for number, _ in named)


def test_an_argument_that_a_form_does_not_record_is_no_cause(made: dict[tuple[str, str | None], Path]) -> None:
    """6.0 sees the other `approximate` of gelu only where both sides do; 4.0 never recorded it."""
    answer, _ = compare(made["target_fault", "4.0"], made["golden", None], Options(steps=(0,)))
    assert [origin.kind for origin in answer.origins] == ["computation"]


def test_gradients_of_another_order_pair_by_their_shapes(dumps: Path, tmp_path: Path) -> None:
    """The last autograd node inside a call hands back the same gradients in an order of its own."""
    folder = convert_dump(dumps / "golden", tmp_path / "turned", form="4.0", summary="statistics")
    path = next(folder.rglob("*.pkl"))
    head = '["Functional_layer_norm_4_backward_output.'
    turned = {"0": "2", "1": "0", "2": "1"}
    lines = path.read_text().splitlines()
    own = sorted(f"{head}{turned[line[len(head)]]}{line[len(head) + 1 :]}" for line in lines if line.startswith(head))
    assert len(own) == 3
    place = next(number for number, line in enumerate(lines) if line.startswith(head))
    rest = [line for line in lines if not line.startswith(head)]
    path.write_text("\n".join([*rest[:place], *own, *rest[place:]]) + "\n")
    answer, _ = compare(folder, dumps / "golden")
    assert (answer.origins, answer.counts.no, answer.counts.warning) == ([], 0, 0)
    same, _ = compare(folder, convert_dump(dumps / "golden", tmp_path / "other", form="4.0", summary="statistics"))
    assert same.counts.no > 0


def test_faq_common_4_calls_that_do_not_line_up_are_told_on_both_sides(dumps: Path, tmp_path: Path) -> None:
    """ptdbg drops what only the bench has, loses calls that changed places, and ends with the shorter side."""
    longer, shorter = (
        convert_dump(dumps / name, tmp_path / name, form=form)
        for name, form in (("target_extra_op", "4.0"), ("golden", "2.3"))
    )
    for target, golden, more in ((longer, shorter, "target"), (shorter, longer, "golden")):
        answer, (unit, *_) = compare(target, golden, Options(steps=(0,)))
        assert {origin.kind for origin in answer.origins} <= {"structure"}
        assert answer.counts.no == 0
        pairs = unit.pairs
        lonely = (pairs.golden < 0) if more == "target" else (pairs.target < 0)
        assert 3 <= int(lonely.sum()) < 15
        assert int(((pairs.golden < 0) | (pairs.target < 0)).sum()) == int(lonely.sum())
        assert (pairs.leftover[lonely] > 0).all()


def test_faq_error_7_a_nested_place_is_the_argument_and_the_place_in_it(dumps: Path, tmp_path: Path) -> None:
    """`input.0.1` is the second of the tensors that the first argument holds, as in msprobe's dump."""
    folder = convert_dump(dumps / "types_L1", tmp_path, form="6.0")
    _, (unit, *_) = compare(folder, dumps / "types_L1")
    items, (left, right) = unit.items, (unit.target.items, unit.golden.items)
    nested = {
        (left.paths[left.path[t]], right.paths[right.path[g]])
        for t, g in zip(items.target.tolist(), items.golden.tolist(), strict=True)
        if t >= 0 and g >= 0 and left.role[t] == right.role[g] == Role.INPUT and "." in left.paths[left.path[t]]
    }
    assert {("0.0", "0.0"), ("0.1", "0.1")} <= nested
    assert all(ours == theirs for ours, theirs in nested)


def test_faq_error_14_the_type_in_the_pkl_decides_what_is_rounding(dumps: Path, tmp_path: Path) -> None:
    """bf16 that lies in float32 files is judged as bf16: no origin, no No."""
    low = convert_dump(dumps / "target_bf16", tmp_path / "low", form="4.0")
    for golden in (dumps / "golden", convert_dump(dumps / "golden", tmp_path / "full", form="2.3")):
        answer, (unit, *_) = compare(low, golden, Options(steps=(0,)))
        assert answer.origins == []
        assert unit.mode == "tensor"
        assert "torch.bfloat16" in unit.target.items.dtypes


def test_a_call_that_a_filtered_dump_holds_nothing_of_is_no_cause(tmp_path: Path) -> None:
    """The first generation drops numbers and whole-number tensors: a batch norm that counts its batches left no line."""
    heads = ("Functional_relu_0", "Functional_tanh_0")
    kept = [
        [f"{name}_forward_{end}", 1, [], "torch.float32", [2], [1.0, 0.5, 0.75]]
        for name in heads
        for end in ("input.0", "output")
    ]
    counted = [
        [f"Tensor_add__0_forward_{end}", 0, [], "torch.int64", [], [3, 3, 3, "Nan"]] for end in ("input.0", "output")
    ]
    full = [[*line[:5], [*line[5], 1.25]] for line in kept]  # type: ignore[misc]
    for name, lines in (("old", kept), ("new", [*full[:2], *counted, *full[2:]])):
        (tmp_path / name).mkdir()
        (tmp_path / name / "dump.pkl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    answer, _ = compare(tmp_path / "old", tmp_path / "new")
    assert answer.origins == []
    turned, _ = compare(tmp_path / "new", tmp_path / "old")
    assert turned.origins == []
    counted[0][3] = counted[1][3] = "torch.float32"
    counted[0][4] = counted[1][4] = [2]
    (tmp_path / "new" / "dump.pkl").write_text(
        "".join(json.dumps(line) + "\n" for line in [*full[:2], *counted, *full[2:]])
    )
    answer, _ = compare(tmp_path / "old", tmp_path / "new")
    assert [origin.kind for origin in answer.origins] == ["structure"]
