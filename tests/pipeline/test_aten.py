"""Dumps of aten operators beside dumps of functions and modules: two real nets, by both names, in msprobe's and ptdbg's forms."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from readers.ptdbg_dumps import convert
from warm_python import warm_python

from dumpscope.domain.facts import Leftover
from dumpscope.domain.records import Direction, NodeKind
from dumpscope.domain.result import Unit
from dumpscope_format.naming import canonical
from pipeline.comparing import compare

SCRIPT = Path(__file__).with_name("aten_models.py")
NORMS = {
    "transformer": ("Functional.layer_norm.3.forward", "Aten.native_layer_norm.3.forward"),
    "convolution": ("Functional.batch_norm.1.forward", "Aten.native_batch_norm.1.forward"),
}
NETS = list(NORMS)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("aten")
    for net in NETS:
        for what in ("L1_good", "L2_good", "L0_good", "mix_good", "L1_fault", "L2_fault", "L1_step", "L2_step"):
            subprocess.run([warm_python(), SCRIPT, folder, f"{net}_{what}"], check=True, capture_output=True)
    return folder


def unmatched(unit: Unit, *, golden: bool) -> list[str]:
    """Forward calls of a side that compute and have no partner and no place inside another's run."""
    mine, other = (unit.pairs.golden, unit.pairs.target) if golden else (unit.pairs.target, unit.pairs.golden)
    dump = unit.golden if golden else unit.target
    rows = np.flatnonzero((mine >= 0) & (other < 0) & (unit.pairs.leftover != Leftover.INSIDE))
    return [
        dump.nodes.names[node]
        for node in mine[rows].tolist()
        if dump.nodes.direction[node] == Direction.FORWARD and dump.nodes.kind[node] == NodeKind.API
    ]


@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize("swapped", [False, True])
def test_operators_and_functions_of_one_run_agree_and_no_function_is_left(runs: Path, net: str, swapped: bool) -> None:
    sides = (runs / f"{net}_L2_good", runs / f"{net}_L1_good")
    answer, (unit,) = compare(*(sides[::-1] if swapped else sides))
    assert answer.origins == []
    assert (answer.counts.no, answer.counts.warning) == (0, 0)
    assert answer.counts.yes > 30
    assert unmatched(unit, golden=not swapped) == []
    left = (unit.pairs.target < 0) | (unit.pairs.golden < 0)
    assert set(unit.pairs.leftover[left].tolist()) <= {Leftover.INSIDE, Leftover.LEFT_OUT}


@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize("swapped", [False, True])
def test_what_a_training_step_does_besides_is_no_cause(runs: Path, net: str, swapped: bool) -> None:
    """The operators that read the loss, and those of the backward pass and the optimizer, have no functions."""
    sides = (runs / f"{net}_L2_step", runs / f"{net}_L1_step")
    answer, _ = compare(*(sides[::-1] if swapped else sides))
    assert answer.origins == []
    assert (answer.counts.no, answer.counts.warning) == (0, 0)


@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize("level", ["L0", "mix"])
def test_operators_agree_with_modules(runs: Path, net: str, level: str) -> None:
    answer, (unit,) = compare(runs / f"{net}_L2_good", runs / f"{net}_{level}_good")
    assert answer.origins == []
    assert (answer.counts.no, answer.counts.warning) == (0, 0)
    assert unmatched(unit, golden=True) == []
    both = (unit.pairs.target >= 0) & (unit.pairs.golden >= 0)
    assert int(both.sum()) >= {"transformer": 21, "convolution": 8}[net], "every module that holds no other one"


@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize("bad", ["L1", "L2"])
@pytest.mark.parametrize("swapped", [False, True])
def test_a_fault_is_named_in_the_names_of_the_target(runs: Path, net: str, bad: str, swapped: bool) -> None:
    sides = {level: runs / f"{net}_{level}_{'fault' if level == bad else 'good'}" for level in ("L1", "L2")}
    target, golden = ("L2", "L1") if swapped else ("L1", "L2")
    answer, _ = compare(sides[target], sides[golden])
    assert [(origin.node, origin.kind) for origin in answer.origins] == [(NORMS[net][target == "L2"], "computation")]


@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize("form", ["4.0", "6.0"])
@pytest.mark.parametrize("summary", ["tensor", "statistics"])
def test_graph_dumps_of_ptdbg_match_its_eager_ones(
    runs: Path, tmp_path: Path, net: str, form: str, summary: str
) -> None:
    graph = overloaded(rank_of(runs / f"{net}_L2_fault"), tmp_path / "graph")
    target = convert(graph, tmp_path / "t" / "rank0", form=form, summary=summary)
    golden = convert(rank_of(runs / f"{net}_L1_good"), tmp_path / "g" / "rank0", form=form, summary=summary)
    answer, (unit,) = compare(target, golden)
    assert unmatched(unit, golden=True) == []
    (origin,) = answer.origins
    assert origin.kind == "computation"
    assert canonical(origin.node) == NORMS[net][1].replace("norm.", "norm.default.")


def rank_of(folder: Path) -> Path:
    (rank,) = (folder / "step0").iterdir()
    return rank


def overloaded(source: Path, folder: Path) -> Path:
    """The dump with operators named as ptdbg names them, with their overload."""
    shutil.copytree(source, folder)
    told = json.loads((folder / "dump.json").read_text())
    told["data"] = {
        ".".join((*name.split(".")[:2], "default", *name.split(".")[2:])): body for name, body in told["data"].items()
    }
    (folder / "dump.json").write_text(json.dumps(told))
    return folder


@pytest.mark.parametrize("net", NETS)
def test_an_operator_behind_the_last_function_is_told_where_a_stack_shows_that_it_is_of_the_forward(
    runs: Path, tmp_path: Path, net: str
) -> None:
    """Those of the backward pass behind it are not: a dump of functions has other nodes for them."""
    rank = rank_of(runs / f"{net}_L2_good")
    shutil.copytree(rank, tmp_path / "more" / "step0" / rank.name)
    rank = tmp_path / "more" / "step0" / rank.name
    last, more = "Aten.nll_loss_forward.0.forward", "Aten.tanh.0.forward"
    told = json.loads((rank / "dump.json").read_text())
    told["data"] = {
        name: body
        for one, body in told["data"].items()
        for name in ((one, more) if one == last else (one,))
    }  # fmt: skip
    (rank / "dump.json").write_text(json.dumps(told))
    stacks = json.loads((rank / "stack.json").read_text())
    next(names for names, _ in stacks.values() if last in names).append(more)
    (rank / "stack.json").write_text(json.dumps(stacks))
    _, (unit,) = compare(tmp_path / "more", runs / f"{net}_L1_good")
    (place,) = np.flatnonzero([unit.target.nodes.names[node] == more for node in unit.pairs.target])
    assert unit.pairs.leftover[place] == Leftover.INSERTED
    left = (unit.pairs.target < 0) | (unit.pairs.golden < 0)
    left[place] = False
    assert set(unit.pairs.leftover[left].tolist()) <= {Leftover.INSIDE, Leftover.LEFT_OUT}
    (rank / "stack.json").unlink()
    _, (unit,) = compare(tmp_path / "more", runs / f"{net}_L1_good")
    assert unit.pairs.leftover[place] == Leftover.LEFT_OUT


def test_a_shape_that_really_differs_is_shown_and_is_no(runs: Path, tmp_path: Path) -> None:
    rank = rank_of(runs / "convolution_L2_good")
    shutil.copytree(rank, tmp_path / "cut" / "step0" / rank.name)
    path = tmp_path / "cut" / "step0" / rank.name / "dump.json"
    told = json.loads(path.read_text())
    told["data"]["Aten.native_batch_norm.1.forward"]["output"][0]["shape"] = [2, 16, 8, 4]
    path.write_text(json.dumps(told))
    answer, _ = compare(tmp_path / "cut", runs / "convolution_L1_good")
    assert answer.counts.no == 1
    (origin,) = answer.origins
    assert origin.node == "Aten.native_batch_norm.1.forward"
    assert "output.0: shape [2, 16, 8, 4] against [2, 16, 8, 8]." in origin.evidence
