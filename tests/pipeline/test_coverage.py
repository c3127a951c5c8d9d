"""No answer says "fine" without having looked: what was judged, what was not, and from which call on."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from warm_python import warm_python

from dumpscope.cli.commands.compare import status
from dumpscope.domain.coverage import GROUPS, REASON_WORDS, Coverage
from dumpscope.domain.facts import Verdict
from dumpscope.domain.options import Options
from dumpscope.export.report import headline
from dumpscope.export.table.unit_table import Table
from dumpscope.pipeline.compare import damage
from dumpscope.pipeline.compare.in_process import Outcome, compare_layouts
from dumpscope.readers import discover
from dumpscope.readers.tensors.checksums import find_broken_member
from dumpscope.verdict.rules import VERDICT_RULES
from dumpscope.verdict.sentences import sentence


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


@pytest.fixture
def rank_1(dumps: Path, tmp_path: Path) -> Path:
    """Rank 1 alone of a run of two."""
    folder = writable(dumps / "dist2_stat_golden", tmp_path / "rank_1")
    shutil.rmtree(folder / "step0" / "rank0")
    return folder


def test_one_rank_of_a_run_is_compared_with_its_namesake_and_not_with_both_ranks_joined(
    dumps: Path, rank_1: Path
) -> None:
    for sides in ((rank_1, dumps / "dist2_stat_golden"), (dumps / "dist2_stat_golden", rank_1)):
        outcome = compared(*sides)
        assert outcome.answer.joined is None
        assert [(unit.step, unit.rank) for unit in outcome.units] == [(0, 1)]
        assert set(covered(outcome).reasons) == {"statistics", "arguments", "buffer"}
        assert [problem.kind for problem in outcome.answer.problems] == ["unmatched_rank"]
        assert exit_status(outcome) == 0


def test_a_wrong_all_reduce_of_the_only_dumped_rank_is_named(dumps: Path, rank_1: Path) -> None:
    def spoil(records: dict[str, Any]) -> dict[str, Any]:
        result = records["Distributed.all_reduce.1.forward"]["output"][0]
        for name in ("Max", "Min", "Mean", "Norm"):
            result[name] *= 1.5
        return records

    rewrite(rank_1, spoil)
    outcome = compared(rank_1, dumps / "dist2_stat_golden")
    assert [(one.node, one.rank, one.kind) for one in outcome.answer.origins] == [
        ("Distributed.all_reduce.1.forward", 1, "communication")
    ]
    assert exit_status(outcome) == 1


def test_what_a_join_that_was_asked_for_loses_is_not_judged(dumps: Path, rank_1: Path) -> None:
    outcome = compared(rank_1, dumps / "dist2_stat_golden", parallel="{}")
    assert outcome.answer.joined is not None
    assert covered(outcome).reasons["collective"] == 18
    assert exit_status(outcome) == 3
    assert "joining the ranks of the golden left its own communication out" in headline(outcome.answer)


def test_a_run_that_lacks_the_last_step_of_the_other_is_not_fine(dumps: Path, tmp_path: Path) -> None:
    one = writable(dumps / "golden", tmp_path / "one")
    for sides in ((one, dumps / "golden"), (dumps / "golden", one)):
        outcome = compared(*sides)
        assert outcome.answer.outcome == "not_fully_judged"
        assert exit_status(outcome) == 3
        assert "has this step" in headline(outcome.answer)
        assert exit_status(compared(*sides, steps=(0,))) == 0


GELU = "Functional.gelu.0.forward.output.0"


def tensor_of(folder: Path, item: str) -> Path:
    (file,) = (folder / "step0").rglob(f"{item}.pt")
    return file


def flip_a_bit(file: Path) -> None:
    """Change one element in a file of torch.save, and nothing of its checksums."""
    content = bytearray(file.read_bytes())
    with zipfile.ZipFile(file) as archive:
        (entry,) = (one for one in archive.infolist() if "/data/" in one.filename)
    name, extra = struct.unpack_from("<2H", content, entry.header_offset + 26)
    content[entry.header_offset + 30 + name + extra + 31] ^= 1
    file.write_bytes(content)


def test_a_flipped_bit_in_a_file_is_damage_and_no_fault_of_an_operator(dumps: Path, tmp_path: Path) -> None:
    folder = writable(dumps / "golden", tmp_path / "flipped")
    flip_a_bit(tensor_of(folder, GELU))
    for sides in ((folder, dumps / "golden"), (dumps / "golden", folder)):
        outcome = compared(*sides, steps=(0,))
        answer = outcome.answer
        assert answer.origins == []
        assert answer.counts.no == 0
        (problem,) = (one for one in answer.problems if one.kind == "damaged")
        assert f"{GELU}.pt is damaged: the bytes of data/0 do not have the checksum" in problem.message
        assert "Copy this file again" in problem.message
        assert covered(outcome).reasons["unreadable"] == 1
        assert exit_status(outcome) == 3


def test_a_file_that_contradicts_its_statistics_is_damage(dumps: Path, tmp_path: Path) -> None:
    """Another step's file under its name: whole, and its checksums are right."""
    folder = writable(dumps / "golden", tmp_path / "mixed")
    (other,) = (dumps / "golden" / "step1").rglob(f"{GELU}.pt")
    shutil.copyfile(other, tensor_of(folder, GELU))
    outcome = compared(folder, dumps / "golden", steps=(0,))
    assert outcome.answer.origins == []
    (problem,) = (one for one in outcome.answer.problems if one.kind == "damaged")
    assert f"{GELU}.pt is not what was recorded: its " in problem.message
    assert exit_status(outcome) == 3


def test_statistics_of_a_tensor_of_many_blocks_are_those_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(damage, "BLOCK", 7)
    whole = np.arange(60.0).reshape(3, 4, 5)
    for array in (whole, whole.transpose(2, 0, 1), whole[:, ::2]):
        blocks = list(damage._blocks(array))
        assert max(block.size for block in blocks) <= 7
        assert sorted(np.concatenate([block.reshape(-1) for block in blocks])) == sorted(array.reshape(-1))


def test_a_file_without_checksums_is_not_called_damaged(dumps: Path, tmp_path: Path) -> None:
    """As torch writes it after set_crc32_options(False): every checksum is wrong, also that of the description."""
    folder = writable(dumps / "golden", tmp_path / "unchecked")
    file = tensor_of(folder, GELU)
    content = bytearray(file.read_bytes())
    with zipfile.ZipFile(file) as archive:
        start = archive.start_dir
        count = len(archive.infolist())
    for _ in range(count):
        content[start + 16 : start + 20] = b"\0\0\0\0"
        start += 46 + sum(struct.unpack_from("<3H", content, start + 28))
    file.write_bytes(content)
    assert find_broken_member(file) is None
    flip_a_bit(tensor_of(writable(dumps / "golden", tmp_path / "flipped"), GELU))
    assert find_broken_member(tensor_of(tmp_path / "flipped", GELU)) == "data/0"


def test_a_tensor_that_cannot_be_read_is_not_yes(dumps: Path, tmp_path: Path) -> None:
    folder = writable(dumps / "golden", tmp_path / "cut")
    file = tensor_of(folder, GELU)
    file.write_bytes(file.read_bytes()[:100])
    outcome = compared(folder, dumps / "golden", steps=(0,))
    (unit,) = outcome.units
    (row,) = unit.facts.errors
    assert VERDICT_RULES[unit.item_opinions.rule[row]] == "X-3"
    assert unit.item_opinions.verdict[row] == Verdict.NA
    said = sentence(unit.context, unit.facts, unit.item_opinions, row)
    assert "Equal" not in said
    assert said.endswith("What else is stored of it agrees.")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("golden", "Equal: every element of the two tensors agrees."),
        ("stat_golden", "Equal in every statistic that both sides store; the elements were not compared."),
        ("md5_golden", "Equal: the hashes of the two tensors agree."),
        ("xor_golden", "Equal: the hashes of the two tensors agree."),
    ],
)
def test_a_sentence_about_equality_says_what_was_read(dumps: Path, name: str, says: str) -> None:
    outcome = compared(dumps / name, dumps / name, steps=(0,))
    (unit,) = outcome.units
    table = Table(unit)
    said = set(table.messages(np.arange(len(table))))
    assert said == {says, "Equal: both sides hold the same value."}
    assert said == {sentence(unit.context, unit.facts, unit.item_opinions, row) for row in range(len(unit.items))}


def test_none_for_a_statistic_on_one_side_is_a_warning(dumps: Path, tmp_path: Path) -> None:
    folder = writable(dumps / "stat_golden", tmp_path / "none")

    def forget(records: dict[str, Any]) -> dict[str, Any]:
        records["Functional.gelu.0.forward"]["output"][0]["Norm"] = None
        return records

    rewrite(folder, forget)
    outcome = compared(folder, dumps / "stat_golden")
    (unit,) = outcome.units
    (row,) = np.flatnonzero(unit.item_opinions.verdict == Verdict.WARNING).tolist()
    assert VERDICT_RULES[unit.item_opinions.rule[row]] == "M-3"
    said = sentence(unit.context, unit.facts, unit.item_opinions, row)
    assert said == "Norm: only one side holds a number. What both sides hold agrees."
    both = compared(folder, folder)
    assert both.answer.counts.warning == 0, "None on both sides agrees"


CHECKPOINTED = """
import sys
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from dumpscope_capture import PrecisionDebugger

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.norm = nn.Linear(8, 8), nn.LayerNorm(8)

    def forward(self, x):
        return self.norm(nn.functional.gelu(self.linear(x)))

def run(folder, level, again):
    torch.manual_seed(0)
    blocks, x = nn.ModuleList([Block(), Block()]), torch.randn(3, 8, requires_grad=True)
    debugger = PrecisionDebugger(dump_path=folder, task="statistics", level=level)
    debugger.start(blocks)
    for block in blocks:
        x = checkpoint(block, x, use_reentrant=True) if again else block(x)
    x.pow(2).sum().backward()
    debugger.stop()
    debugger.step()
    PrecisionDebugger._instance = None

for level in ("L1", "mix"):
    for again in (False, True):
        run(f"{sys.argv[1]}/{level}_{again}", level, again)
"""


def test_no_gradient_of_a_checkpointed_run_is_left_unjudged(tmp_path: Path) -> None:
    """A run that computes its blocks again numbers their backward calls otherwise. They meet those of the plain run, with modules
    and with functions alone; only what was computed again has no partner."""
    pytest.importorskip("torch")
    subprocess.run([warm_python(), "-c", CHECKPOINTED, tmp_path], check=True, timeout=300, capture_output=True)
    for level in ("L1", "mix"):
        outcome = compared(tmp_path / f"{level}_True", tmp_path / f"{level}_False")
        assert outcome.answer.counts.no == 0
        coverage = covered(outcome)
        assert coverage.ends == [], "both runs went on to their end"
        (unit,) = outcome.units
        alone = [unit.golden.nodes.names[node] for node in unit.pairs.golden[unit.pairs.target < 0]]
        assert coverage.missing == 0
        assert exit_status(outcome) == 0
        assert not any("Functional" in name and "backward" in name for name in alone)


def test_what_a_module_received_counts_as_followed_by_the_calls_in_it(tmp_path: Path) -> None:
    """The module stands behind its calls in the file; an input without numbers is no end of what was judged."""
    bare = {"type": "torch.Tensor", "dtype": "torch.int64", "shape": [4], "Max": None, "Min": None, "Mean": None, "Norm": None,
            "requires_grad": False}  # fmt: skip
    known = {**bare, "dtype": "torch.float32", "Max": 1.0, "Min": 0.0, "Mean": 0.5, "Norm": 1.0}
    data = {
        "Module.a.Inner.forward.0": {"input_args": [bare], "input_kwargs": {}, "output": [known]},
        "Module.Net.forward.0": {"input_args": [bare], "input_kwargs": {}, "output": [known]},
    }
    rank = tmp_path / "step0" / "rank0"
    rank.mkdir(parents=True)
    (rank / "construct.json").write_text(
        json.dumps({"Module.Net.forward.0": None, "Module.a.Inner.forward.0": "Module.Net.forward.0"})
    )
    (rank / "dump.json").write_text(json.dumps({"task": "statistics", "level": "L0", "data": data}))
    assert covered(compared(tmp_path, tmp_path)).complete
    del data["Module.Net.forward.0"]["output"], data["Module.a.Inner.forward.0"]["output"]
    (rank / "dump.json").write_text(json.dumps({"task": "statistics", "level": "L0", "data": data}))
    assert not covered(compared(tmp_path, tmp_path)).complete
