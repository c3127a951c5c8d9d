"""No sentence contradicts a number: what evidence says of calls is held against the files themselves, read here again."""

from __future__ import annotations

import json
import math
import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings

from dumpscope.analysis.explanation import Largest, Part, explain
from dumpscope.domain.facts import Method, Origin
from dumpscope.domain.options import Options
from dumpscope.domain.records import Kind, RankDump
from dumpscope.domain.result import Unit
from dumpscope.export.report import headline
from dumpscope.pipeline.compare.in_process import Outcome, compare_layouts
from dumpscope.readers import discover
from dumpscope.texts import Phrase, english
from dumpscope.verdict.rules import VERDICT_RULES
from dumpscope.verdict.sentences import describe_verdict
from properties.generated import Side, pairs, write

STATISTICS = ("Max", "Min", "Mean", "Norm")
SIDES = ("target", "golden")
PLACE = re.compile(r"(input|output)\.(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """One rank of a side: records by node, and its folder."""

    folder: Path
    records: dict[str, Any]

    def leaf(self, node: str, place: str) -> Any:
        """The record of an item, None where there is none."""
        found = PLACE.fullmatch(place)
        body = self.records.get(node)
        if found is None or body is None:
            return None
        backward = ".backward" in node
        items = body["output" if found[1] == "output" else "input" if backward else "input_args"]
        return items[int(found[2])] if int(found[2]) < len(items) else None

    def array(self, record: Any) -> Any:
        return np.load(self.folder / "dump_tensor_data" / record["data_name"])


def read_files(root: Path, rank: int) -> Files:
    folder = root / "step0" / f"rank{rank}"
    return Files(folder=folder, records=json.loads((folder / "dump.json").read_text())["data"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A node of an origin on both sides, None where a side has none."""

    unit: Unit
    pair: int
    names: tuple[str | None, str | None]
    files: tuple[Files, Files]

    def places(self, word: str) -> Iterator[str]:
        """Items of one role that both sides have and that the verdict did not leave out."""
        items, context = self.unit.items, self.unit.context
        for row in np.flatnonzero(items.pair == self.pair).tolist():
            left_out = VERDICT_RULES[self.unit.item_opinions.rule[row]].startswith("X-")
            if left_out or min(items.target[row], items.golden[row]) < 0:
                continue
            dump, item = self.unit.target, int(items.target[row])
            role = dump.items.role[item].item()
            named = "output" if role == 3 else "input"
            if named == word and context.both[row]:
                yield f"{named}.{dump.items.paths[dump.items.path[item]]}"

    def leaves(self, place: str) -> tuple[Any, Any]:
        """Both records of an item: of this call, or of another one whose name stands before the item's."""
        names = self.names
        if not PLACE.fullmatch(place):
            node, role, number = place.rsplit(".", 2)
            place = f"{role}.{number}"
            names = next(one for one in zip(*all_names(self.unit), strict=True) if node == (one[0] or one[1]))
        one, other = (
            None if name is None else files.leaf(name, place) for name, files in zip(names, self.files, strict=True)
        )
        return one, other

    def equal(self, place: str) -> bool | None:
        """Whether an item is the same on both sides by all that is stored; None where nothing of both is."""
        one, other = self.leaves(place)
        if not isinstance(one, dict) or not isinstance(other, dict):
            return None
        if "value" in one or "value" in other:
            return same(one.get("value"), other.get("value"))
        if one["shape"] != other["shape"]:
            return False
        if "data_name" in one and "data_name" in other:
            mine, theirs = (files.array(leaf) for files, leaf in zip(self.files, (one, other), strict=True))
            return bool(np.array_equal(mine, theirs, equal_nan=mine.dtype.kind == "f" and theirs.dtype.kind == "f"))
        known = [key for key in (*STATISTICS, "md5") if one.get(key) is not None and other.get(key) is not None]
        return all(same(one[key], other[key]) for key in known) if known else None


def same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one) and math.isnan(other):
        return True
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def calls_of(outcome: Outcome, origin: Origin, roots: tuple[Path, Path]) -> Call:
    unit = next(one for one in outcome.units if (one.step, one.rank) == (origin.step, origin.rank))
    files = tuple(read_files(root, unit.rank) for root in roots)
    names = list(zip(*all_names(unit), strict=True))
    for side in (0, 1):  # an origin has the target's name wherever it has one
        for pair, both in enumerate(names):
            if both[side] == origin.node:
                return Call(unit=unit, pair=pair, names=both, files=files)  # type: ignore[arg-type]
    raise AssertionError(f"{origin.node} is no call of the comparison")


def flat(phrases: list[Phrase]) -> Iterator[Phrase]:
    for one in phrases:
        yield one
        for value in one["values"].values():
            if isinstance(value, list):
                yield from flat(value)


# -- what each sentence claims -----------------------------------------------------------------------------------------


def inputs_are_equal(call: Call, _values: dict[str, Any]) -> None:
    assert [place for place in call.places("input") if call.equal(place) is False] == []


def inputs_agree(call: Call, values: dict[str, Any]) -> None:
    rows = [row for row in np.flatnonzero(call.unit.items.pair == call.pair).tolist() if is_input(call.unit, row)]
    scores = call.unit.item_opinions.score[rows]
    worst = float(np.nanmax(scores))
    assert f"{worst:.2g}" == values["worst"]
    assert values.get("count", 1) == int((~np.isnan(scores)).sum())


def no_input_is_known(call: Call, _values: dict[str, Any]) -> None:
    rows = [row for row in np.flatnonzero(call.unit.items.pair == call.pair).tolist() if is_input(call.unit, row)]
    assert np.isnan(call.unit.item_opinions.score[rows]).all()


def is_input(unit: Unit, row: int) -> bool:
    dump: RankDump = unit.target if unit.items.target[row] >= 0 else unit.golden
    item = int(unit.items.target[row] if unit.items.target[row] >= 0 else unit.items.golden[row])
    return bool(dump.items.role[item] != 3)


def output_differs(call: Call, _values: dict[str, Any]) -> None:
    if None not in call.names:
        assert any(call.equal(place) is not True for place in call.places("output"))


def output_is_not_finite(call: Call, _values: dict[str, Any]) -> None:
    found = False
    for place in call.places("output"):
        leaf = call.leaves(place)[0]
        if "data_name" in leaf:
            found |= not np.isfinite(call.files[0].array(leaf)).all()
        found |= any(isinstance(leaf.get(key), float) and not math.isfinite(leaf[key]) for key in STATISTICS)
    assert found


def shapes_are(call: Call, values: dict[str, Any]) -> None:
    shapes = [str(leaf["shape"]) for leaf in call.leaves(values["place"])]
    assert shapes == [values["target"], values["golden"]]
    assert shapes[0] != shapes[1]


def elements_differ(call: Call, values: dict[str, Any]) -> None:
    mine, theirs = (files.array(leaf) for files, leaf in zip(call.files, call.leaves(values["place"]), strict=True))
    both_nan = np.isnan(mine.astype(np.float64)) & np.isnan(theirs.astype(np.float64))
    assert values["elements"] == mine.size
    assert values["unequal"] == int(((mine != theirs) & ~both_nan).sum())


def hashes_differ(call: Call, values: dict[str, Any]) -> None:
    one, other = call.leaves(values["place"])
    assert one["md5"] != other["md5"]


def statistics_are(call: Call, values: dict[str, Any]) -> None:
    for part in values["parts"]:
        if part["id"] == "part.changed":
            name = part["values"]["name"]
            for side, leaf in zip(SIDES, call.leaves(values["place"]), strict=True):
                written, stored = float(part["values"][side]), float(leaf[name])
                assert same(written, stored) or math.isclose(written, stored, rel_tol=1e-5)


def names_are_of_one_side(call: Call, values: dict[str, Any]) -> None:
    side = SIDES.index(values["side"][0]["id"].removeprefix("side."))
    (listed,) = values["names"]
    names = listed["values"]["names"].split(", ")
    assert all(name in call.files[side].records for name in names)
    alone = {
        pair_names[side]
        for pair_names in zip(*all_names(call.unit), strict=True)
        if pair_names[side] is not None and pair_names[1 - side] is None
    }
    assert set(names) <= alone
    assert values.get("count", 1) == len(names) + listed["values"].get("count", 0)


def all_names(unit: Unit) -> tuple[list[str | None], list[str | None]]:
    target, golden = (
        [dump.nodes.names[node] if node >= 0 else None for node in nodes.tolist()]
        for dump, nodes in ((unit.target, unit.pairs.target), (unit.golden, unit.pairs.golden))
    )
    return target, golden


def an_argument_differs(call: Call, _values: dict[str, Any]) -> None:
    assert any(call.equal(place) is False or None in call.leaves(place) for place in argument_places(call))


def argument_places(call: Call) -> list[str]:
    count = max(
        len(files.records.get(name, {}).get("input_args", []))
        for name, files in zip(call.names, call.files, strict=True)
        if name
    )
    return [f"input.{place}" for place in range(count)]


def dtypes_are(call: Call, values: dict[str, Any]) -> None:
    leaves = call.leaves(values["place"])
    assert [leaf["dtype"].removeprefix("torch.") for leaf in leaves] == [
        values[side].removeprefix("torch.") for side in SIDES
    ]


CLAIMS: dict[str, Callable[[Call, dict[str, Any]], None]] = {
    "inputs.none": no_input_is_known,
    "inputs.near": inputs_agree,
    **{f"inputs.{word}{number}": inputs_are_equal for word in ("equal", "alike") for number in ("", "_one", "_both")},
    **{f"inputs.agree{number}": inputs_agree for number in ("", "_one", "_both")},
    "origin.computation": output_differs,
    "origin.computation_backward": output_differs,
    "origin.overflow": output_is_not_finite,
    "origin.overflow_backward": output_is_not_finite,
    "origin.argument": an_argument_differs,
    "origin.argument_faint": an_argument_differs,
    "origin.structure": names_are_of_one_side,
    "origin.structure_one": names_are_of_one_side,
    "origin.dtype_given": dtypes_are,
    "origin.dtype_made": dtypes_are,
    "shown.shapes": shapes_are,
    "shown.tensor": elements_differ,
    "shown.tensor_at": elements_differ,
    "shown.hashes": hashes_differ,
    "shown.statistics": statistics_are,
}


# -- the explanation of any call ---------------------------------------------------------------------------------------


def parts_of(call: Call) -> list[Part]:
    """The item pairs of a call as its explanation looks at them."""
    unit, found = call.unit, []
    for row in np.flatnonzero(unit.items.pair == call.pair).tolist():
        numbers = int(unit.items.target[row]), int(unit.items.golden[row])
        sides = [(dump, item) for dump, item in zip((unit.target, unit.golden), numbers, strict=True) if item >= 0]
        dump, item = sides[0]
        forms = {
            (one.items.dtypes[one.items.dtype[at]], tuple(one.items.shapes[one.items.shape[at]]))
            for one, at in sides
            if one.items.kind[at] == Kind.TENSOR
        }
        score = float(unit.item_opinions.score[row])
        said = describe_verdict(unit.context, unit.facts, unit.item_opinions, row)
        named = "output" if dump.items.role[item].item() == 3 else "input"
        found.append(
            Part(
                place=f"{named}.{dump.items.paths[dump.items.path[item]]}",
                received=named == "input",
                weight=False,
                both=len(sides) == 2,
                tensor=all(one.items.kind[at] == Kind.TENSOR for one, at in sides),
                rule=VERDICT_RULES[unit.item_opinions.rule[row]],
                score=None if math.isnan(score) else score,
                alike=any(one["id"] == "item.equal_statistics" for one in said),
                same_form=len(forms) == 1 if forms else None,
            )
        )
    return found


def compared_inputs(call: Call) -> list[tuple[str, bool | None]]:
    """What a call received on both sides and was compared, and whether it is equal."""
    return [
        (part.place, call.equal(part.place))
        for part in parts_of(call)
        if part.received and part.both and (part.equal or part.apart)
    ]


def all_read_is_equal(call: Call, values: dict[str, Any]) -> None:
    assert [place for place, equal in compared_inputs(call) if equal is False] == []
    (said,) = values["inputs"]
    count = {"_one": 1, "both": 2}.get(said["id"][-4:], said["values"].get("count"))
    assert len(compared_inputs(call)) == count


def its_input_differs(call: Call, _values: dict[str, Any]) -> None:
    ((_, equal),) = compared_inputs(call)
    assert equal is not True


def some_inputs_differ(call: Call, values: dict[str, Any]) -> None:
    found = compared_inputs(call)
    assert values["of"] == len(found)
    equal = [equal for _, equal in found]
    assert equal.count(False) <= values["count"] <= len(equal) - equal.count(True)
    if "place" in values:
        assert call.equal(values["place"]) is not True


def the_largest_is_there(call: Call, values: dict[str, Any], place: str) -> None:
    mine, theirs = (
        np.atleast_1d(files.array(leaf)) for files, leaf in zip(call.files, call.leaves(place), strict=True)
    )
    index = tuple(json.loads(values["index"]))
    apart = np.abs(mine.astype(np.float64) - theirs.astype(np.float64))
    assert apart[index] == np.max(apart[np.isfinite(apart)])
    assert (values["target"], values["golden"]) == (f"{mine[index]:.6g}", f"{theirs[index]:.6g}")


def what_is_ruled_out_is_the_same(call: Call, values: dict[str, Any]) -> None:
    words = {one["id"].removeprefix("explain.same_") for one in values["parts"]}
    pairs = [(part.place, *call.leaves(part.place)) for part in parts_of(call)]
    for place, one, other in pairs:
        tensors = [isinstance(leaf, dict) and "shape" in leaf for leaf in (one, other)]
        if one is None or other is None or tensors[0] != tensors[1]:  # it met an item of another place
            continue
        tensor = tensors[0]
        if "forms" in words and tensor:
            assert (one["shape"], one["dtype"]) == (other["shape"], other["dtype"])
        if "arguments" in words and not tensor and place.startswith("input"):
            assert same(one, other) or call.equal(place)


EXPLAINED: dict[str, Callable[[Call, dict[str, Any]], None]] = {
    "explain.reads": all_read_is_equal,
    "explain.reads_other": its_input_differs,
    "explain.reads_apart": some_inputs_differ,
    "explain.reads_some": some_inputs_differ,
    "explain.same": what_is_ruled_out_is_the_same,
}


def every_call(outcome: Outcome, roots: tuple[Path, Path]) -> Iterator[Call]:
    for unit in outcome.units:
        files = tuple(read_files(root, unit.rank) for root in roots)
        for pair, names in enumerate(zip(*all_names(unit), strict=True)):
            if unit.pairs.method[pair] == Method.FUSED:  # items of several calls, which one name does not find
                continue
            yield Call(unit=unit, pair=pair, names=names, files=files)  # type: ignore[arg-type]


def explained_truly(call: Call) -> None:
    parts = parts_of(call)
    found = explain(parts, differs=True, alone=None in call.names)
    told = explain(parts, differs=True, told_input=True)
    for one in flat([*found.before, *found.after, *told.before]):
        if one["id"] in EXPLAINED:
            EXPLAINED[one["id"]](call, one["values"])
    assert found.compared == found.equal + found.apart == len(compared_inputs(call))
    unit = call.unit
    for row in np.flatnonzero(unit.items.pair == call.pair).tolist():
        detail = unit.facts.details.get(row)
        if detail is None or not detail.worst_index or not detail.unequal or detail.worst_target == detail.worst_golden:
            continue
        largest = Largest(
            index=detail.worst_index, target=f"{detail.worst_target:.6g}", golden=f"{detail.worst_golden:.6g}"
        )
        (said,) = (one for one in explain([], differs=True, largest=largest).after if one["id"] == "explain.largest")
        dump, item = unit.target, int(unit.items.target[row])
        named = "output" if dump.items.role[item].item() == 3 else "input"
        the_largest_is_there(call, said["values"], f"{named}.{dump.items.paths[dump.items.path[item]]}")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(pairs())
def test_every_sentence_of_an_explanation_is_true_of_the_files(both: tuple[Side, Side]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        roots = write(Path(folder) / "target", both[0]), write(Path(folder) / "golden", both[1])
        layouts = discover(roots[0]), discover(roots[1])
        outcome = compare_layouts(*layouts, Options(), paths=("target", "golden"), jobs=1)
        for call in every_call(outcome, roots):
            explained_truly(call)
        for one in outcome.answer.suspects:
            if one.times is not None:
                assert f"{one.times:.3g}" in one.why or f"{one.times:.0f}" in one.why
                assert one.times > 1


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(pairs())
def test_every_sentence_of_evidence_is_true_of_the_files(both: tuple[Side, Side]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        roots = write(Path(folder) / "target", both[0]), write(Path(folder) / "golden", both[1])
        layouts = discover(roots[0]), discover(roots[1])
        outcome = compare_layouts(*layouts, Options(), paths=("target", "golden"), jobs=1)
        answer = outcome.answer
        for origin in answer.origins:
            assert 0 < origin.confidence <= 1
            assert origin.evidence == english(origin.evidence_said)
            call = calls_of(outcome, origin, roots)
            for one in flat(origin.evidence_said):
                if one["id"] in CLAIMS:
                    CLAIMS[one["id"]](call, one["values"])
        fine = headline(answer) == "No divergence"
        assert not fine or (answer.counts.no, answer.counts.unreadable, answer.origins) == (0, 0, [])
        if answer.outcome == "agrees":
            assert answer.coverage is not None
            assert answer.coverage.missing == 0
