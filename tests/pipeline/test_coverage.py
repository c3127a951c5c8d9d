"""No answer says "fine" without having looked: what was judged, what was not, and from which call on."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dumpscope.cli.commands.compare import status
from dumpscope.domain.coverage import GROUPS, REASON_WORDS, Coverage
from dumpscope.domain.options import Options
from dumpscope.export.report import headline
from dumpscope.pipeline.compare.in_process import Outcome, compare_layouts
from dumpscope.readers import discover


def compared(target: Path, golden: Path, **options: Any) -> Outcome:
    return compare_layouts(
        discover(target), discover(golden), Options(**options), paths=(str(target), str(golden)), jobs=1
    )


def covered(outcome: Outcome) -> Coverage:
    assert outcome.answer.coverage is not None
    return outcome.answer.coverage


def exit_status(outcome: Outcome) -> int:
    return status(outcome.answer, "no", incomplete=outcome.incomplete)


def writable(source: Path, folder: Path) -> Path:
    """A copy of step 0 of a dump that may be changed."""
    shutil.copytree(source / "step0", folder / "step0", copy_function=shutil.copyfile)
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    return folder


def rewrite(folder: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Change the records of a dump of one rank."""
    (file,) = folder.rglob("dump.json")
    content = json.loads(file.read_text())
    file.write_text(json.dumps({**content, "data": change(content["data"])}))


def until(name: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """The records up to and with one call, as a run that raised after it leaves them."""

    def cut(records: dict[str, Any]) -> dict[str, Any]:
        names = list(records)
        return {one: records[one] for one in names[: names.index(name) + 1]}

    return cut


@pytest.fixture
def died(dumps: Path, tmp_path: Path) -> Path:
    """A run that raised in the middle of its forward pass, behind a whole module."""
    folder = writable(dumps / "stat_golden", tmp_path / "died")
    rewrite(folder, until("Module.layers.0.Block.forward.0"))
    return folder


@pytest.mark.parametrize("which", ["target", "golden"])
def test_a_run_that_died_half_way_is_not_fully_judged_and_told_where_it_ended(
    dumps: Path, died: Path, which: str
) -> None:
    whole = dumps / "stat_golden"
    outcome = compared(died, whole) if which == "target" else compared(whole, died)
    answer, coverage = outcome.answer, covered(outcome)
    assert answer.origins == []
    assert answer.counts.no == 0
    assert answer.outcome == "not_fully_judged"
    assert exit_status(outcome) == 3
    (end,) = coverage.ends
    assert (end.side, end.node) == (which, "Module.layers.0.Block.forward.0")
    assert coverage.first is not None
    assert (coverage.first.node, coverage.first.reason) == (end.following, "ended")
    assert f"The record of the {which} ends before, at Module.layers.0.Block.forward.0." in headline(answer)
    assert coverage.reasons["ended"] == end.items > 100


def test_a_run_that_died_before_its_backward_pass_does_not_agree(dumps: Path, tmp_path: Path) -> None:
    folder = writable(dumps / "stat_golden", tmp_path / "forward")
    rewrite(folder, lambda records: {name: one for name, one in records.items() if "forward" in name})
    outcome = compared(dumps / "stat_golden", folder)
    assert outcome.answer.outcome == "not_fully_judged"
    first = covered(outcome).first
    assert first is not None
    assert first.node.endswith(".backward") or ".backward." in first.node


def test_a_dump_cut_in_its_file_has_no_origin_behind_the_cut(dumps: Path, tmp_path: Path) -> None:
    for share in (0.35, 0.62, 0.9):
        folder = writable(dumps / "stat_golden", tmp_path / str(share))
        (file,) = folder.rglob("dump.json")
        file.write_bytes(file.read_bytes()[: int(file.stat().st_size * share)])
        outcome = compared(folder, dumps / "stat_golden")
        assert outcome.answer.origins == []
        assert exit_status(outcome) == 3
        (end,) = covered(outcome).ends
        assert end.side == "target"


def test_parts_that_the_user_left_out_are_counted_and_are_not_missing(dumps: Path) -> None:
    for part in ("cfg_scope", "cfg_list_module", "cfg_risk_core", "cfg_L0_stat", "cfg_L1_stat", "cfg_data_mode_bwd"):
        outcome = compared(dumps / part, dumps / "stat_golden")
        assert exit_status(outcome) == 0, part
        assert covered(outcome).group("left_out") > 50, part


@pytest.mark.parametrize(
    ("name", "by"),
    [("golden", "tensors"), ("stat_golden", "statistics"), ("md5_golden", "hashes"), ("xor_golden", "hashes")],
)
def test_an_equal_pair_says_by_what_it_was_judged(dumps: Path, name: str, by: str) -> None:
    outcome = compared(dumps / name, dumps / name)
    coverage = covered(outcome)
    assert set(coverage.reasons) == {by, "arguments"}
    assert coverage.first is None
    assert coverage.group("judged") == coverage.items == outcome.answer.counts.items
    assert outcome.answer.outcome == "agrees"


def test_every_item_has_one_reason(dumps: Path, died: Path) -> None:
    for target in (died, dumps / "stat_fault", dumps / "target_extra_op", dumps / "types_L1"):
        outcome = compared(target, dumps / "stat_golden")
        coverage = covered(outcome)
        assert coverage.items == outcome.answer.counts.items
        assert sum(coverage.group(group) for group in GROUPS) == coverage.items
        assert sum(one["items"] for one in coverage.counted()) == coverage.items
    assert sorted(reason for reasons in GROUPS.values() for reason in reasons) == list(range(len(REASON_WORDS)))
