"""Figures and values of one dump over REST, against its own tensor files."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from plots.tensor_dumps import node_of, write_dump

from api.conftest import BASE, Client
from api.test_comparisons import fits, get
from api.test_overflow import ready
from dumpscope.api.app import create_app
from dumpscope.api.models.dumps import DumpNode, DumpNodeRow
from dumpscope.api.routes import figure_replies
from dumpscope.api.routes.dumps import figures, prechecks
from dumpscope.pipeline.figures.dump_figures import DUMP_FIGURES
from dumpscope.settings import Settings

CAUSE = "Functional.gelu.0.forward"


@pytest.fixture(scope="module")
def broken(served: Client, dumps: Path) -> str:
    return ready(served, dumps / "target_nan")


@pytest.fixture(scope="module")
def recorded(served: Client, dumps: Path) -> str:
    return ready(served, dumps / "stat_golden")


def drawn(client: Client, dump: str, figure: str, more: str = "") -> Any:
    found = get(client, f"/api/dumps/{dump}/figures/{figure}?{more}")
    fits(figure_replies.Figure, found)
    assert bool(found["text"]) != bool(found["missing"])
    return found


def output_of(client: Client, dump: str, node: str) -> int:
    items = get(client, f"/api/dumps/{dump}/nodes/{node}")["items"]
    return int(next(item["id"] for item in items if item["role"] == "output"))


@pytest.mark.parametrize("name", DUMP_FIGURES)
def test_every_figure_is_drawn_in_both_scales_with_words_and_numbers(served: Client, broken: str, name: str) -> None:
    for log in (True, False):
        figure = drawn(served, broken, name, f"node={CAUSE}&log={log}")
        assert figure["figure"]["data"]
        assert figure["log"] == log
        reply = served.get(f"/api/dumps/{broken}/figures/{name}.csv?node={CAUSE}&log={log}")
        assert reply.status_code == 200, reply.text
        rows = list(csv.reader(io.StringIO(reply.text)))
        assert len(rows) > 1
        assert {len(row) for row in rows} == {len(rows[0])}


def test_the_histogram_tells_of_the_one_infinity_that_was_made(served: Client, broken: str) -> None:
    text = drawn(served, broken, "histogram", f"node={CAUSE}")["text"]
    assert "192 elements" in text
    assert "Not drawn: 0 NaN, 1 inf, 0 -inf." in text
    sound = drawn(served, broken, "histogram", "node=Functional.linear.2.forward")["text"]
    assert "No NaN, no infinity." in sound


def test_the_run_names_the_call_where_it_was_born(served: Client, broken: str) -> None:
    figure = drawn(served, broken, "value-order", f"node={CAUSE}")
    star = next(trace for trace in figure["figure"]["data"] if trace["name"] == "first not asked for")
    place = star["x"][0]
    row = get(served, f"/api/dumps/{broken}/nodes?at={place}&limit=1")["items"][0]
    assert row["name"] == CAUSE
    assert f"The first that nobody asked for is at {CAUSE}, place {place}." in figure["text"]
    largest = drawn(served, broken, "value-order", "measure=max")
    assert largest["figure"]["layout"]["meta"]["measure"] == "max"
    assert largest["text"].startswith("Largest magnitude of the first output of ")


def test_without_tensors_the_statistics_are_drawn_and_the_setting_named(served: Client, recorded: str) -> None:
    node = "Functional.softmax.1.forward"
    figure = drawn(served, recorded, "histogram", f"node={node}")
    assert next(trace["name"] for trace in figure["figure"]["data"]) == "minimum and maximum"
    assert f'"task": "tensor" and "list": ["{node}"]' in figure["text"]
    assert drawn(served, recorded, "value-map", f"node={node}")["missing"].startswith("The tensor was not dumped.")
    item = output_of(served, recorded, node)
    seen = get(served, f"/api/dumps/{recorded}/items/{item}/values")
    fits(figures.TensorValues, seen)
    assert (seen["rows"], seen["at"]) == ([], None)
    assert f'"list": ["{node}"]' in seen["missing"]


def test_a_dump_without_any_number_says_which_setting_brings_them(served: Client, dumps: Path) -> None:
    structure = ready(served, dumps / "cfg_structure")
    for name in ("value-order", "api-values"):
        missing = drawn(served, structure, name)["missing"]
        assert missing.startswith("No numbers of outputs were recorded")
        assert '"task": "statistics"' in missing


def test_the_list_has_the_first_output_of_each_call(served: Client, broken: str) -> None:
    rows = get(served, f"/api/dumps/{broken}/nodes?q=gelu.0")["items"]
    for row in rows:
        fits(DumpNodeRow, row)
    row = next(row for row in rows if row["name"] == CAUSE)
    assert row["output"] == {"dtype": "torch.float32", "shape": [2, 6, 16], "norm": "inf", "largest": "inf"}
    node = get(served, f"/api/dumps/{broken}/nodes/Functional.linear.2.forward")
    fits(DumpNode, node)
    made = next(item for item in node["items"] if item["role"] == "output")
    row = get(served, f"/api/dumps/{broken}/nodes?q=linear.2.forward")["items"][0]
    assert row["output"]["norm"] == made["norm"]
    assert row["output"]["largest"] == max(abs(made["max"]), abs(made["min"]))


def test_a_call_has_its_pre_check_result_or_none(served: Client, broken: str) -> None:
    found = get(served, f"/api/dumps/{broken}/prechecks/{CAUSE}")
    fits(prechecks.CallAlone, found)
    assert found == {"result": None, "checked": 0}
    line = {"name": CAUSE.removesuffix(".forward"), "step": 0, "rank": 0, "refused": "no such operator"}
    text = "\n".join(map(json.dumps, ({"device": "npu:0"}, line)))
    given = served.post(f"/api/dumps/{broken}/prechecks", json={"text": text})
    assert given.status_code == 200, given.text
    told = get(served, f"/api/dumps/{broken}/prechecks/{CAUSE}")
    assert told["checked"] == 1
    assert (told["result"]["word"], told["result"]["device"]) == ("skip", "npu:0")
    assert get(served, f"/api/dumps/{broken}/nodes?q={CAUSE}")["items"][0]["alone"] == "skip"
    assert served.get(f"/api/dumps/{broken}/prechecks/nothing.0.forward").status_code == 404
    served.delete(f"/api/dumps/{broken}/prechecks")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("figures/nothing", 404),
        ("figures/histogram", 400),
        ("figures/histogram?node=nothing", 404),
        ("figures/histogram?item=99999999", 404),
        ("figures/value-order?node=nothing", 404),
        (f"figures/value-map?node={CAUSE}&axes=9", 400),
        ("items/99999999/values", 404),
        ("figures/histogram?item=-1", 422),
    ],
)
def test_what_is_not_there_is_refused(served: Client, broken: str, path: str, status: int) -> None:
    assert served.get(f"/api/dumps/{broken}/{path}").status_code == status


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Client, str, dict[str, Any]]]:
    """A server and a dump of tensors made up: five million elements, rows, one number, none."""
    folder = tmp_path_factory.mktemp("alone")
    random = np.random.default_rng(0)
    big = random.normal(size=(5, 1000, 1000)).astype(np.float32)
    big[4, 3, 2], big[1, 2, 3] = np.float32(-999.5), np.nan
    rows = np.zeros((8, 64), dtype=np.float32)
    rows[[1, 5]] = 2
    tensors = {
        "big": big, "rows": rows, "whole": np.array([2**53 + 1, -3], dtype=np.int64), "single": np.array(1.5),
        "none": np.zeros((0, 3), np.float32),
    }  # fmt: skip
    write_dump(folder / "dumps" / "made", tensors)
    settings = Settings(data_dir=folder / "data", roots=[folder / "dumps"], executor="threads:1")
    with TestClient(create_app(settings), base_url=BASE) as running:
        yield running, ready(running, folder / "dumps" / "made"), tensors


def test_a_tensor_of_five_million_elements_is_seen_whole(made: tuple[Client, str, dict[str, Any]]) -> None:
    client, dump, tensors = made
    text = drawn(client, dump, "histogram", f"node={node_of('big')}")["text"]
    assert "5000000 elements, finite values from -999.5 to" in text
    assert "Not drawn: 1 NaN, 0 inf, 0 -inf." in text
    item = output_of(client, dump, node_of("big"))
    seen = get(client, f"/api/dumps/{dump}/items/{item}/values")
    fits(figures.TensorValues, seen)
    assert seen["places"] == {"largest": [4, 3, 2], "lost": [1, 2, 3]}
    assert seen["at"] == [1, 2, 3]
    around = get(client, f"/api/dumps/{dump}/items/{item}/values?at=4,3,2&rows=3&columns=3")
    expected = [[str(value) for value in line] for line in tensors["big"][4, 2:5, 1:4]]
    assert around["rows"] == expected
    part = get(client, f"/api/dumps/{dump}/items/{item}/values?within=0:2-3")
    inside = np.abs(tensors["big"][2])
    assert part["at"] == [2, *map(int, np.unravel_index(inside.argmax(), inside.shape))]


def test_rows_whole_numbers_one_number_and_none(made: tuple[Client, str, dict[str, Any]]) -> None:
    client, dump, _tensors = made
    text = drawn(client, dump, "value-map", f"node={node_of('rows')}")["text"]
    assert "Only rows 1, 5 of 8 hold anything but zero (dim 0)." in text
    item = output_of(client, dump, node_of("whole"))
    assert get(client, f"/api/dumps/{dump}/items/{item}/values")["rows"] == [["9007199254740993", "-3"]]
    single = output_of(client, dump, node_of("single"))
    assert get(client, f"/api/dumps/{dump}/items/{single}/values")["rows"] == [["1.5"]]
    for figure in ("histogram", "value-map"):
        assert drawn(client, dump, figure, f"node={node_of('none')}")["missing"] == "The tensor is empty."
    none = output_of(client, dump, node_of("none"))
    assert get(client, f"/api/dumps/{dump}/items/{none}/values")["missing"] == "The tensor is empty."


def test_a_dump_that_went_away_says_so(
    made: tuple[Client, str, dict[str, Any]], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    client, dump, _tensors = made
    folder = Path(get(client, f"/api/dumps/{dump}")["path"]) / "step0" / "rank0" / "dump_tensor_data"
    moved = folder.with_name("elsewhere")
    folder.rename(moved)
    try:
        missing = drawn(client, dump, "histogram", f"node={node_of('rows')}")["missing"]
        assert "tensor files are not here" in missing
    finally:
        moved.rename(folder)
