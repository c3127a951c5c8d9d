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

from dumpscope.domain.facts import Origin
from dumpscope.domain.options import Options
from dumpscope.domain.records import RankDump
from dumpscope.domain.result import Unit
from dumpscope.export.report import headline
from dumpscope.pipeline.compare.in_process import Outcome, compare_layouts
from dumpscope.readers import discover
from dumpscope.texts import Phrase, english
from dumpscope.verdict.rules import VERDICT_RULES
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
        one, other = (
            None if name is None else files.leaf(name, place)
            for name, files in zip(self.names, self.files, strict=True)
        )
        return one, other

    def equal(self, place: str) -> bool | None:
        """Whether an item is the same on both sides by all that is stored; None where nothing of both is."""
        one, other = self.leaves(place)
        if not isinstance(one, dict) or not isinstance(other, dict):
            return None
        if "value" in one or "value" in other:
            return same(one.get("value"), other.get("value"))
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


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
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
