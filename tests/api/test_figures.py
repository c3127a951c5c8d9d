"""Figures, their tables and single values over REST: right, small and strict for every dtype, size and lack of data."""

from __future__ import annotations

import csv
import io
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from fastapi.testclient import TestClient
from plots.tensor_dumps import node_of, write_dump
from warm_python import warm_python

from api.conftest import BASE, Client, compare
from api.test_comparisons import fits, get
from dumpscope.api.app import create_app
from dumpscope.api.routes import figure_replies
from dumpscope.api.routes.comparisons import figures
from dumpscope.pipeline.figures.registry import NAMES
from dumpscope.settings import Settings

ORIGIN = "Functional.softmax.1.forward"
ATEN_MODELS = Path(__file__).parents[1] / "pipeline" / "aten_models.py"
PAIRS = ("histogram", "pair-density", "difference-map", "error-histogram")


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_is_drawn_in_both_scales_with_words_and_numbers(served: Client, fault: str, name: str) -> None:
    for log in (True, False):
        address = f"/api/comparisons/{fault}/figures/{name}"
        figure = get(served, f"{address}?node={ORIGIN}&log={log}")
        fits(figure_replies.Figure, figure)
        assert figure["figure"]["data"]
        assert figure["text"]
        assert figure["log"] == log
        reply = served.get(f"{address}.csv?node={ORIGIN}&log={log}")
        assert reply.status_code == 200, reply.text
        assert reply.headers["content-type"].startswith("text/csv")
        rows = list(csv.reader(io.StringIO(reply.text)))
        assert len(rows) > 1
        assert {len(row) for row in rows} == {len(rows[0])}
        assert name in reply.headers["content-disposition"]


def test_the_map_of_the_known_fault_says_which_row_differs(served: Client, fault: str) -> None:
    figure = get(served, f"/api/comparisons/{fault}/figures/difference-map?node={ORIGIN}")
    assert "Only indices 0 of 2 differ (dim 0)." in figure["text"]
    axes = figure["figure"]["layout"]["meta"]["axes"]
    chosen = get(served, f"/api/comparisons/{fault}/figures/difference-map?node={ORIGIN}&axes=3,0&reduce=rms")
    assert chosen["figure"]["layout"]["meta"]["axes"] == [3, 0] != axes
    refused = served.get(f"/api/comparisons/{fault}/figures/difference-map?node={ORIGIN}&axes=9")
    assert (refused.status_code, refused.json()["error"]) == (400, "usage")


def test_steps_of_a_call_are_compared(served: Client, fault: str) -> None:
    text = get(served, f"/api/comparisons/{fault}/figures/call-runs?node={ORIGIN}")["text"]
    assert f"{ORIGIN}, steps: 2, ranks: 1." in text


@pytest.mark.parametrize("name", PAIRS)
def test_without_tensors_a_figure_says_which_setting_brings_them(client: Client, dumps: Path, name: str) -> None:
    comparison = compare(client, dumps / "stat_fault", dumps / "stat_golden")
    figure = get(client, f"/api/comparisons/{comparison}/figures/{name}?node={ORIGIN}")
    assert figure["figure"] is None
    assert f'"task": "tensor" and "list": ["{ORIGIN}"]' in figure["missing"]
    assert client.get(f"/api/comparisons/{comparison}/figures/{name}.csv?node={ORIGIN}").status_code == 404
    item = get(client, f"/api/comparisons/{comparison}/pairs?node={ORIGIN}")["items"][-1]
    seen = get(client, f"/api/comparisons/{comparison}/pairs/{item['id']}/values")
    fits(figures.Values, seen)
    assert seen["rows"] == []
    assert f'"list": ["{ORIGIN}"]' in seen["missing"]


def sides() -> tuple[dict[str, Any], dict[str, Any]]:
    random = np.random.default_rng(0)
    rows = random.normal(size=(8, 64)).astype(np.float32)
    wrong = rows.copy()
    wrong[[1, 5]] *= 1.25
    whole = np.array([2**53, 2**63 - 1, 7], dtype=np.int64)
    lost = np.ones(6, dtype=np.float16)
    lost[4] = np.nan
    big = random.normal(size=(5, 1000, 1000)).astype(np.float32)
    peaks = big.copy()
    peaks[4, 3, 2], peaks[0, 0, 0], peaks[1, 2, 3] = np.float32(999.5), np.float32(-888.25), np.nan
    half = np.arange(12).reshape(3, 4).astype(ml_dtypes.bfloat16)
    other_half = half.copy()
    other_half[2, 1] = ml_dtypes.bfloat16(9.0625)
    golden = {
        "rows": rows, "whole": whole, "lost": np.ones(6, dtype=np.float16), "big": big, "half": half,
        "phase": np.array([1 + 1j, 2], dtype=np.complex64), "none": np.zeros((0, 3), np.float32),
        "single": np.array(1.5, np.float64), "shape": np.zeros((2, 3), np.float32), "flags": np.array([True, False]),
    }  # fmt: skip
    target = {
        "rows": wrong, "whole": np.array([2**53 + 1, 2**63 - 1, 7], dtype=np.int64), "lost": lost, "big": peaks,
        "half": other_half, "phase": np.array([1 - 1j, 2], dtype=np.complex64), "none": np.zeros((0, 3), np.float32),
        "single": np.array(2.5, np.float64), "shape": np.zeros((3, 3), np.float32), "flags": np.array([True, True]),
    }  # fmt: skip
    return target, golden


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Client, str]]:
    """A server and a comparison of tensors made up: rows that differ, odd dtypes, no elements, one, five million."""
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("made")
    target, golden = sides()
    write_dump(folder / "dumps" / "target", target)
    write_dump(folder / "dumps" / "golden", golden)
    settings = Settings(data_dir=folder / "data", roots=[folder / "dumps"], executor="threads:1")
    with TestClient(create_app(settings), base_url=BASE) as running:
        yield running, compare(running, folder / "dumps" / "target", folder / "dumps" / "golden")


def pair_of(made: tuple[Client, str], name: str) -> int:
    client, comparison = made
    return int(get(client, f"/api/comparisons/{comparison}/pairs?node={node_of(name)}")["items"][0]["id"])


def drawn(made: tuple[Client, str], name: str, figure: str) -> Any:
    client, comparison = made
    return get(client, f"/api/comparisons/{comparison}/figures/{figure}?pair={pair_of(made, name)}")


def looked(made: tuple[Client, str], name: str, more: str = "") -> Any:
    client, comparison = made
    found = get(client, f"/api/comparisons/{comparison}/pairs/{pair_of(made, name)}/values?{more}")
    fits(figures.Values, found)
    return found


@pytest.mark.parametrize("name", ["rows", "whole", "lost", "big", "half", "phase", "none", "single", "shape", "flags"])
@pytest.mark.parametrize("figure", PAIRS[:3])
def test_every_kind_of_tensor_is_drawn_or_says_why_not(made: tuple[Client, str], name: str, figure: str) -> None:
    found = drawn(made, name, figure)
    assert bool(found["text"]) != bool(found["missing"])
    if name == "shape":
        assert "[3, 3] and [2, 3] differ" in found["missing"]
    elif name == "none":
        assert "Both tensors are empty." in (found["text"] or found["missing"])
    else:
        assert found["figure"]["data"]


def test_only_rows_1_and_5_differ_over_rest(made: tuple[Client, str]) -> None:
    assert "Only rows 1, 5 of 8 differ (dim 0)." in drawn(made, "rows", "difference-map")["text"]


def test_five_million_points_keep_their_ends_and_their_nan(made: tuple[Client, str]) -> None:
    text = drawn(made, "big", "histogram")["text"]
    assert "5000000 elements per side between -888.2 and 999.5." in text
    assert "Outside the target histogram: 1 nan" in text
    assert "different kinds of them: 1." in drawn(made, "big", "difference-map")["text"]
    assert "so not drawn here: 1." in drawn(made, "big", "pair-density")["text"]
    opened = looked(made, "big")
    assert opened["places"] == {"worst": [4, 3, 2], "first": [0, 0, 0], "lost": [1, 2, 3]}
    assert opened["at"] == [1, 2, 3]


def cell(found: Any) -> Any:
    """The cell of the element asked for."""
    across = found["axes"][-1]
    row = found["at"][found["axes"][0]] - found["row"] if len(found["axes"]) > 1 else 0
    return found["rows"][row][found["at"][across] - found["column"]]


@pytest.mark.parametrize(
    ("name", "at", "target", "golden", "difference"),
    [
        ("whole", "0", "9007199254740993", "9007199254740992", "1"),
        ("lost", "4", "nan", "1.0", "nan"),
        ("half", "2,1", "9.0625", "9.0", "0.0625"),
        ("phase", "0", "1.0-1.0j", "1.0+1.0j", "0-2.0j"),
        ("single", "0", "2.5", "1.5", "1.0"),
        ("flags", "1", "True", "False", "1"),
        ("big", "4,3,2", "999.5", None, None),
    ],
)
def test_values_are_exact(
    made: tuple[Client, str], name: str, at: str, target: str, golden: str | None, difference: str | None
) -> None:
    found = looked(made, name, f"at={at}")
    seen = cell(found)
    assert seen["target"] == target
    assert golden is None or (seen["golden"], seen["difference"]) == (golden, difference)
    assert found["places"] is None
    assert target in found["text"]


def test_windows_stay_inside_and_of_the_size_asked_for(made: tuple[Client, str]) -> None:
    found = looked(made, "big", "at=4,999,999&rows=21&columns=21")
    assert (len(found["rows"]), len(found["rows"][0]), found["row"], found["column"]) == (21, 21, 979, 979)
    turned = looked(made, "big", "at=4,0,7&axes=2,0&rows=3&columns=9")
    assert (turned["axes"], len(turned["rows"]), len(turned["rows"][0])) == ([2, 0], 3, 5)


def test_the_worst_of_a_part_is_opened(made: tuple[Client, str]) -> None:
    assert looked(made, "rows", "within=0:4-8")["at"][0] == 5
    assert looked(made, "rows", "within=0:2-3,1:7-9")["at"] == [2, 7]


@pytest.mark.parametrize("more", ["within=0:5-9", "at=5,0,0", "at=1", "axes=3,0", "axes=1,1"])
def test_elements_that_are_not_there_are_refused_with_a_hint(made: tuple[Client, str], more: str) -> None:
    client, comparison = made
    reply = client.get(f"/api/comparisons/{comparison}/pairs/{pair_of(made, 'big')}/values?{more}")
    assert reply.status_code == 400
    assert "3" in reply.json()["hint"]


def test_shapes_that_differ_show_what_each_side_has(made: tuple[Client, str]) -> None:
    found = looked(made, "shape", "at=2,0")
    assert (found["target_shape"], found["golden_shape"]) == ([3, 3], [2, 3])
    assert cell(found) == {"target": "0.0", "golden": None, "difference": None, "equal": False}
    assert looked(made, "none")["missing"] == "Both tensors are empty."


def test_a_file_that_is_gone_is_said(tmp_path: Path) -> None:
    target, golden = sides()
    write_dump(tmp_path / "target", {"rows": target["rows"]})
    write_dump(tmp_path / "golden", {"rows": golden["rows"]})
    settings = Settings(data_dir=tmp_path / "data", roots=[tmp_path], executor="threads:1")
    with TestClient(create_app(settings), base_url=BASE) as running:
        again = running, compare(running, tmp_path / "target", tmp_path / "golden")
        for file in (tmp_path / "target").rglob("*.npy"):
            file.unlink()
        for figure in PAIRS[:3]:
            assert "the tensor file is missing" in drawn(again, "rows", figure)["missing"]
        assert "the tensor file is missing" in looked(again, "rows")["missing"]


def test_two_tensors_with_a_view_between_them_are_drawn_in_the_shape_of_the_target(tmp_path: Path) -> None:
    for name in ("transformer_L1_fault", "transformer_L2_good"):
        subprocess.run([warm_python(), ATEN_MODELS, tmp_path, name], check=True, capture_output=True)
    settings = Settings(data_dir=tmp_path / "data", roots=[tmp_path], executor="threads:2")
    with TestClient(create_app(settings), base_url=BASE) as client:
        comparison = compare(client, tmp_path / "transformer_L1_fault", tmp_path / "transformer_L2_good")
        node = "Functional.linear.6.forward"
        for name in PAIRS:
            figure = get(client, f"/api/comparisons/{comparison}/figures/{name}?node={node}")
            assert figure["figure"] is not None, figure["missing"]
        (item,) = [
            one for one in get(client, f"/api/comparisons/{comparison}/pairs?node={node}")["items"]
            if str(one["target"]).endswith("output.0")
        ]  # fmt: skip
        seen = get(client, f"/api/comparisons/{comparison}/pairs/{item['id']}/values")
        assert seen["target_shape"] == [2, 6, 64]
        assert seen["rows"]
