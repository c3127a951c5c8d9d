"""What is written is what the reader finds, and dumps of all forms compare with each other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from capture.ptdbg.reading import array, lines
from dumpscope.cli import main
from dumpscope.domain.records import RankDump, item_name
from dumpscope.readers import discover, read_rank
from dumpscope_capture import seeding
from dumpscope_capture.ptdbg import (
    acc_cmp_dump,
    configure,
    core,
    overflow_check,
    register_hook,
    set_dump_path,
    set_dump_switch,
)

FORMS = ["2.3", "4.0", "6.0", "msprobe"]


def run(form: str, folder: str, *, scale: float = 1.0, **switch: Any) -> Path:
    """Train a little in one form. Returns the folder of the dump."""
    core.forget()
    torch.manual_seed(3)
    net = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.ReLU(), torch.nn.Linear(6, 2))
    x = torch.rand(3, 4)
    if form == "msprobe":
        configure(layout="msprobe", generation="6.0")
    else:
        configure(layout="ptdbg", generation=form)
    Path(folder).mkdir()
    set_dump_path(f"./{folder}/a.pkl" if form == "2.3" else f"./{folder}")
    register_hook(net, acc_cmp_dump)
    set_dump_switch("ON", filter_switch="OFF", **switch)
    hidden = net[1](net[0](x))
    torch.cat([net[2](hidden), torch.mul(hidden, scale)], 1).square().mean().backward()
    set_dump_switch("OFF")
    core.forget()
    seeding.undo()
    return Path(folder)


def read(folder: Path) -> RankDump:
    (ref,) = discover(folder).ranks
    return read_rank(ref)


@pytest.mark.parametrize("mode", ["all", "api_stack", "list", "stack"])
@pytest.mark.parametrize("form", ["2.3", "4.0", "6.0"])
def test_every_line_that_is_written_is_read_with_its_numbers(form: str, mode: str) -> None:
    scope = ["Functional_linear", "Torch_cat_0"] if mode == "list" else None
    folder = run(form, "out", mode=mode, scope=scope)
    (path,) = folder.rglob("*.pkl")
    written = lines(path)
    dump = read(folder)
    data = {fields[0]: fields for fields in written if len(fields) == 6}
    assert {item_name(dump, number) for number in range(len(dump.items))} == set(data)
    assert len(dump.items) == len(data)
    for number in range(len(dump.items)):
        fields = data[item_name(dump, number)]
        if fields[3] == "torch.float32":
            assert dump.items.stats[number][: len(fields[5])].tolist() == pytest.approx(fields[5])
            assert dump.items.shapes[dump.items.shape[number]] == tuple(fields[4])
    stacks = [fields for fields in written if len(fields) == 2]
    assert int((dump.nodes.stack >= 0).sum()) == len(stacks)
    assert not [problem for problem in dump.problems if problem.kind not in ("missing", "no_values")]


def test_all_forms_hold_the_same_calls_with_the_same_numbers() -> None:
    dumps = {form: read(run(form, f"out{place}")) for place, form in enumerate(FORMS)}
    wanted = {
        "Functional.linear.0.forward",
        "Functional.relu.0.forward",
        "Torch.cat.0.forward",
        "Functional.linear.1.backward",
    }
    seen = {form: {name.replace("_", ".") for name in dump.nodes.names} for form, dump in dumps.items()}
    for form in FORMS:
        assert wanted <= seen[form], form
    assert seen["2.3"] == seen["4.0"] == seen["6.0"]


@pytest.mark.parametrize("golden", FORMS)
@pytest.mark.parametrize("target", FORMS)
def test_a_dump_of_any_form_compares_with_one_of_any_other_and_shows_where_they_part(target: str, golden: str) -> None:
    def status(*words: str) -> int:
        with pytest.raises(SystemExit) as end:
            main(list(words))
        return int(end.value.code or 0)

    good = run(golden, "good")
    same = run(target, "same")
    worse = run(target, "worse", scale=1.5)
    assert status("compare", str(same), str(good), "--json") == 0
    assert status("compare", str(worse), str(good), "-o", "result", "--format", "json") == 1
    (document,) = Path("result").glob("*.json")
    origin = json.loads(document.read_text())["origins"][0]["node"]
    assert origin.replace("_", ".") == "Torch.mul.0.forward"


def test_findings_of_the_overflow_check_are_read() -> None:
    set_dump_path("./out")
    register_hook(None, overflow_check, overflow_nums=-1)
    torch.mul(torch.full((2,), 1e38), 100)
    F.relu(torch.ones(2))
    torch.exp(torch.full((2,), 100.0))
    set_dump_switch("OFF")
    dump = read(Path("out"))
    assert sorted(dump.nodes.names) == ["Torch.exp.0.forward", "Torch.mul.0.forward"]
    assert np.isinf(
        array("out/ptdbg_dump_v6.0/step0/rank0/Torch_exp_0_forward_2.pkl", "Torch.exp.0.forward.output")
    ).all()
