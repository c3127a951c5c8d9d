"""Who made an argument, in dumps of our own capture: what the dump names is right where equal values can only guess."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from dumpscope.analysis.unit.dataflow import trace, trace_rank
from dumpscope.domain.options import Options
from dumpscope.domain.records import RankDump, Role, item_name
from dumpscope.domain.result import Unit
from dumpscope.parallel.columns import keep_nodes, pool
from dumpscope.pipeline.compare.unit import compare_rank
from dumpscope.readers import discover, read_rank
from pipeline.comparing import compare


def read(folder: Path) -> RankDump:
    (ref,) = discover(folder).ranks
    return read_rank(ref)


def silenced(dump: RankDump) -> RankDump:
    """The dump without the names of producers, as msprobe would have written it."""
    return replace(dump, items=replace(dump.items, producer=np.full(len(dump.items), -1, np.int32)))


def told(dump: RankDump) -> dict[str, str]:
    """Argument -> record that made it."""
    found = trace_rank(dump)
    return {item_name(dump, row): item_name(dump, int(found[row])) for row in np.flatnonzero(found >= 0).tolist()}


def makers(unit: Unit) -> dict[str, str]:
    """The same of a comparison: argument -> name of the call."""
    found, names = trace(unit), unit.target.nodes.names
    rows = np.flatnonzero(found.received >= 0).tolist()
    node = unit.pairs.target
    return {
        item_name(unit.target, int(unit.items.target[row])): names[node[found.received[row]]]
        for row in rows
        if unit.items.target[row] >= 0
    }


def unit_of(target: RankDump, golden: RankDump) -> Unit:
    return compare_rank(target, golden, step=0, rank=0, options=Options())


def test_every_name_that_our_capture_wrote_is_read(own_dumps: Path) -> None:
    dump = read(own_dumps / "good")
    written = json.loads(Path(dump.ref.dump_json).read_text(encoding="utf-8"))["data"]
    names = {
        f"{node}.{item.replace('kwargs.', 'input.')}": made
        for node, body in written.items()
        for item, made in body.get("producers", {}).items()
    }
    found = told(dump)
    assert {item: found.get(item) for item in names} == names
    assert len(names) > 20
    assert not dump.problems


def test_of_two_calls_that_made_equal_tensors_the_right_one_is_named(own_dumps: Path) -> None:
    dump = read(own_dumps / "good")
    first, second = "Torch.sin.0.forward.input.0", "Torch.sigmoid.1.forward.input.0"
    named, guessed = told(dump), told(silenced(dump))
    assert (named[first], named[second]) == ("Torch.exp.0.forward.output.0", "Torch.exp.1.forward.output.0")
    assert guessed[first] == guessed[second]


def test_zeros_are_known_where_the_dump_names_their_maker(own_dumps: Path) -> None:
    dump, cosine = read(own_dumps / "good"), "Torch.cos.0.forward.input.0"
    assert told(dump)[cosine] == "Functional.relu.1.forward.output.0"
    assert cosine not in told(silenced(dump))


def test_what_was_changed_in_place_was_made_by_the_call_that_changed_it(own_dumps: Path) -> None:
    found = told(read(own_dumps / "good"))
    assert found["Tensor.mul_.0.forward.input.0"] == "Torch.sin.0.forward.output.0"
    assert found["Torch.tanh.0.forward.input.0"] == "Tensor.mul_.0.forward.output.0"


def test_one_value_may_go_to_several_calls(own_dumps: Path) -> None:
    found = told(read(own_dumps / "good"))
    hidden = "Functional.relu.0.forward.output.0"
    assert [item for item, made in found.items() if made == hidden] == [
        "Functional.softmax.0.forward.input.0",
        "Torch.sigmoid.0.forward.input.0",
    ]


def test_gradients_whose_makers_no_dump_names_are_still_told_by_their_values(own_dumps: Path) -> None:
    found = told(read(own_dumps / "good"))
    assert found["Functional.linear.0.backward.input.0"] == "Functional.relu.0.backward.output.0"


def test_a_comparison_follows_the_names_of_its_target(own_dumps: Path) -> None:
    good = read(own_dumps / "good")
    found, guessed = makers(unit_of(good, good)), makers(unit_of(silenced(good), good))
    assert found["Torch.sin.0.forward.input.0"] == "Torch.exp.0.forward"
    assert guessed["Torch.sin.0.forward.input.0"] == "Torch.exp.1.forward"
    assert set(guessed) <= set(found)


def test_a_module_that_handed_a_tensor_on_gives_way_to_the_call_inside_it(own_dumps: Path) -> None:
    """The dump names the module, as its view was made by no recorded call; the values are those of the call before the view."""
    good = read(own_dumps / "good")
    assert told(good)["Torch.sin.1.forward.input.0"] == "Module.gate.Gate.forward.0.output.0.left"
    assert makers(unit_of(good, good))["Torch.sin.1.forward.input.0"] == "Tensor.__mul__.0.forward"


def test_only_the_origin_is_blamed_and_it_explains_what_received_its_result(own_dumps: Path) -> None:
    answer, (unit,) = compare(own_dumps / "fault", own_dumps / "good")
    (origin,) = answer.origins
    assert origin.node == "Torch.exp.0.forward"
    differs = {unit.target.nodes.names[node] for node in np.flatnonzero(unit.node_opinions.verdict == 3).tolist()}
    assert {"Torch.sin.0.forward", "Torch.tanh.0.forward"} <= differs
    assert origin.explains >= len(differs) - 1


def test_either_side_as_target_names_the_same_origin(own_dumps: Path) -> None:
    pair = own_dumps / "fault", own_dumps / "good"
    assert [[one.node for one in compare(*sides)[0].origins] for sides in (pair, pair[::-1])] == [
        ["Torch.exp.0.forward"],
        ["Torch.exp.0.forward"],
    ]


def test_no_call_is_made_by_a_later_one(own_dumps: Path) -> None:
    for dump in (read(own_dumps / "good"), silenced(read(own_dumps / "good"))):
        found = trace_rank(dump)
        rows = np.flatnonzero(found >= 0)
        assert (dump.items.node[found[rows]] < dump.items.node[rows]).all()
        assert (dump.items.role[found[rows]] == Role.OUTPUT).all()


def test_a_name_that_points_at_a_later_call_is_not_followed(own_dumps: Path) -> None:
    """Ranks that are joined may bring calls into another order."""
    good = read(own_dumps / "good")
    producer = good.items.producer.copy()
    rows = {item_name(good, row): row for row in range(len(good.items))}
    producer[rows["Torch.sin.0.forward.input.0"]] = rows["Torch.tanh.1.forward.output.0"]
    turned = replace(good, items=replace(good.items, producer=producer))
    assert makers(unit_of(turned, turned))["Torch.sin.0.forward.input.0"] == "Torch.exp.1.forward"


@given(data=st.data())
def test_producers_stay_who_they_are_when_calls_are_left_out(own_dumps: Path, data: st.DataObject) -> None:
    good = read(own_dumps / "good")
    keep = np.array(data.draw(st.lists(st.booleans(), min_size=len(good.nodes), max_size=len(good.nodes))))
    part = keep_nodes(good, keep)
    kept = {name for name, stays in zip(good.nodes.names, keep.tolist(), strict=True) if stays}
    named = np.flatnonzero(good.items.producer >= 0).tolist()
    wanted = {
        item_name(good, row): item_name(good, int(good.items.producer[row]))
        for row in named
        if {good.nodes.names[good.items.node[one]] for one in (row, int(good.items.producer[row]))} <= kept
    }
    left = np.flatnonzero(part.items.producer >= 0).tolist()
    assert {item_name(part, row): item_name(part, int(part.items.producer[row])) for row in left} == wanted


@pytest.mark.parametrize("count", [1, 3])
def test_dumps_laid_end_to_end_keep_their_own_producers(own_dumps: Path, count: int) -> None:
    good = read(own_dumps / "good")
    items = pool([good] * count).items
    size = len(good.items)
    for place in range(count):
        own = items.producer[place * size : (place + 1) * size]
        assert (np.where(own >= 0, own - place * size, -1) == good.items.producer).all()
