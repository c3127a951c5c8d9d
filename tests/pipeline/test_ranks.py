"""The cause across ranks, on real runs of four processes (truth: `tests/data/make_ranks.py`)."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
import sys
import tarfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dumpscope.cli.commands.compare import status
from dumpscope.domain.facts import Class, Verdict
from dumpscope.domain.options import Options
from dumpscope.domain.records import item_name
from dumpscope.domain.result import Answer
from dumpscope.errors import DumpscopeError
from dumpscope.pipeline.compare import in_process
from dumpscope.pipeline.planning.rank_pairs import RankPair
from dumpscope.readers import discover
from dumpscope.texts import as_ranges, on_ranks
from dumpscope.verdict.rules import CODES
from pipeline.comparing import compare

ARCHIVE = Path(__file__).parents[1] / "data" / "ranks.tar.xz"
KILLED = Path()
compare_and_spill = in_process._compare_and_spill

FAULTS = [
    ("relu", 1, "Functional.relu.0.forward", "overflow", {0, 2, 3}),
    ("reduced", 2, "Distributed.all_reduce.1.forward", "communication", {0, 1, 3}),
    ("everywhere", 0, "Distributed.all_reduce.0.forward", "communication", {1, 2, 3}),
    ("late", 3, "Functional.relu.0.forward", "computation", {0, 1, 2}),
    ("received", 3, "Distributed.recv.0.forward", "communication", {0, 1, 2}),
    ("sent", 2, "Functional.silu.0.forward", "computation", {0, 1, 3}),
    ("root", 2, "Functional.gelu.0.forward", "computation", {0, 1, 3}),
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("ranks")
    with tarfile.open(ARCHIVE) as tar:
        tar.extractall(folder)
    yield folder
    shutil.rmtree(folder)


def named(answer: Answer) -> list[tuple[int, str, str]]:
    return [(origin.rank, origin.node, origin.kind) for origin in answer.origins]


@pytest.mark.parametrize(("run", "rank", "node", "kind", "reached"), FAULTS)
def test_one_fault_is_one_origin_on_the_rank_that_made_it(
    runs: Path, run: str, rank: int, node: str, kind: str, reached: set[int]
) -> None:
    answer, units = compare(runs / run, runs / "golden")
    assert named(answer) == [(rank, node, kind)]
    assert {one.rank for one in answer.origins[0].spread} == reached
    assert all(one.node.startswith("Distributed.") for one in answer.origins[0].spread)
    causes = {
        (unit.rank, unit.target.nodes.names[unit.pairs.target[pair]])
        for unit in units
        for pair, cls in enumerate(unit.node_opinions.cls.tolist())
        if cls in (Class.ORIGIN, Class.NONFINITE)
    }
    assert (rank, node) in causes
    assert all(name == node for _, name in causes), "other ranks only received it"


@pytest.mark.parametrize(("run", "rank", "node", "kind", "reached"), FAULTS)
def test_swapped_sides_name_the_same_rank(
    runs: Path, run: str, rank: int, node: str, kind: str, reached: set[int]
) -> None:
    answer, _ = compare(runs / "golden", runs / run)
    assert [(where, name) for where, name, _ in named(answer)] == [(rank, node)]
    assert {one.rank for one in answer.origins[0].spread} == reached


@pytest.mark.parametrize("run", ["golden", "rubbish"])
def test_what_lies_in_buffers_that_nobody_reads_is_no_cause(runs: Path, run: str) -> None:
    answer, units = compare(runs / run, runs / "golden")
    assert answer.origins == []
    assert answer.counts.no == 0
    assert status(answer, "warning", incomplete=False) == 0
    unjudged = {
        item_name(unit.target, int(unit.items.target[row])).split(".forward.")[-1].split(".")[0]
        + " of "
        + unit.target.nodes.names[unit.pairs.target[unit.items.pair[row]]].split(".")[1]
        for unit in units
        for row in np.flatnonzero(unit.item_opinions.rule == CODES["X-5"]).tolist()
    }
    assert unjudged == {"input of broadcast", "input of batch_isend_irecv", "output of reduce"}


def test_what_the_root_of_a_broadcast_sends_is_judged(runs: Path) -> None:
    answer, units = compare(runs / "root", runs / "golden")
    (sender,) = (unit for unit in units if unit.rank == 2)
    pair = sender.target.nodes.names.index("Distributed.broadcast.0.forward")
    rows = np.flatnonzero(sender.items.pair == pair)
    assert Verdict.NO in sender.item_opinions.verdict[rows]
    assert answer.counts.no > 0


def test_a_failed_communication_is_said_to_have_equal_inputs_on_all_ranks(runs: Path) -> None:
    answer, _ = compare(runs / "everywhere", runs / "golden")
    assert "The inputs of all 4 ranks agree; the result differs on rank 0, 1, 2, 3." in answer.origins[0].evidence
    answer, _ = compare(runs / "received", runs / "golden")
    assert "The sent data agree, the data received on rank 3 do not." in answer.origins[0].evidence


def test_a_sender_that_is_not_there_is_not_cleared(runs: Path, tmp_path: Path) -> None:
    for side in ("sent", "golden"):
        shutil.copytree(runs / side, tmp_path / side)
        shutil.rmtree(tmp_path / side / "step0" / "rank2")
    answer, _ = compare(tmp_path / "sent", tmp_path / "golden")
    first = answer.origins[0]
    assert (first.rank, first.node) == (3, "Distributed.recv.0.forward")
    assert "The data sent by rank 2 are not known" in first.evidence
    whole, _ = compare(runs / "received", runs / "golden")
    assert first.confidence < whole.origins[0].confidence


def test_ranks_are_ordered_by_communication_and_not_by_number_or_share_of_the_run(runs: Path, tmp_path: Path) -> None:
    """Two calls change alone, with no call that receives it: rank 3 makes many calls before its relu, and all of them before the
    first all_reduce; the softmax of rank 0 stands behind that."""
    shutil.copytree(runs / "golden", tmp_path / "target")
    for rank, name in ((0, "Functional.softmax.0.forward"), (3, "Functional.relu.0.forward")):
        file = tmp_path / "target" / "step0" / f"rank{rank}" / "dump.json"
        dump = json.loads(file.read_text())
        for output in dump["data"][name]["output"]:
            output["Norm"] *= 1.5
        file.write_text(json.dumps(dump))
    answer, units = compare(tmp_path / "target", runs / "golden")
    assert [(rank, node) for rank, node, _ in named(answer)] == [
        (3, "Functional.relu.0.forward"),
        (0, "Functional.softmax.0.forward"),
    ]
    share = {
        unit.rank: unit.target.nodes.names.index(node) / len(unit.target.nodes)
        for unit in units
        for rank, node, _ in named(answer)
        if unit.rank == rank
    }
    assert share[3] > share[0]
    assert answer.first_no is not None
    assert answer.first_no.rank == 3


def test_a_result_that_was_not_recorded_clears_what_follows_it(runs: Path, tmp_path: Path) -> None:
    for side in ("relu", "golden"):
        shutil.copytree(runs / side, tmp_path / side)
        for file in (tmp_path / side).rglob("dump.json"):
            dump = json.loads(file.read_text())
            dump["data"]["Distributed.all_reduce.0.forward"]["output"] = [None]
            file.write_text(json.dumps(dump))
    answer, _ = compare(tmp_path / "relu", tmp_path / "golden")
    assert named(answer) == [(1, "Functional.relu.0.forward", "overflow")]


@pytest.mark.parametrize("summary", ["stat", "md5", "tensor"])
def test_of_two_ranks_the_receiver_is_named_as_reached(dumps: Path, summary: str) -> None:
    answer, _ = compare(dumps / f"dist2_{summary}_fault", dumps / f"dist2_{summary}_golden")
    (origin,) = answer.origins
    assert (origin.rank, origin.node) == (1, "Tensor.__add__.0.forward")
    assert [one.rank for one in origin.spread] in ([], [0])


def test_the_answer_does_not_depend_on_the_number_of_workers(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_process, "WORTH", 0)
    sides = discover(runs / "sent"), discover(runs / "golden")
    one, two = (in_process.compare_layouts(*sides, Options(), paths=("sent", "golden"), jobs=jobs) for jobs in (1, 2))
    assert one.answer == two.answer
    assert one.collectives == two.collectives


def killed_once(pair: RankPair, *rest: Any) -> Any:
    """Compares in a worker; the first worker that has done rank 2 is killed before it can tell."""
    done = compare_and_spill(pair, *rest)
    if pair.rank == 2 and not KILLED.exists():
        with suppress(OSError):
            KILLED.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return done


def test_ranks_whose_worker_was_killed_are_compared_again(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_process, "WORTH", 0)
    monkeypatch.setattr(in_process, "_context", lambda: multiprocessing.get_context("fork"))
    sides = discover(runs / "sent"), discover(runs / "golden")

    def answered(jobs: int) -> Answer:
        return in_process.compare_layouts(*sides, Options(), paths=("sent", "golden"), jobs=jobs).answer

    whole = answered(1)
    monkeypatch.setattr(in_process, "_compare_and_spill", killed_once)
    monkeypatch.setattr(sys.modules[__name__], "KILLED", tmp_path / "killed")
    assert answered(2) == whole
    assert (tmp_path / "killed").exists()
    monkeypatch.setattr(
        sys.modules[__name__], "KILLED", tmp_path / "nowhere" / "killed"
    )  # cannot be made: it dies each time
    with pytest.raises(DumpscopeError, match="worker process died") as caught:
        answered(2)
    assert "--jobs 1" in (caught.value.hint or "")


def test_what_replicas_share_is_one_origin_that_names_their_ranks(runs: Path, tmp_path: Path) -> None:
    """The relu that breaks on rank 1 breaks on every rank, as a wrong kernel under data parallelism does."""
    for side in ("relu", "golden"):
        shutil.copytree(runs / side, tmp_path / side)
    node = "Functional.relu.0.forward"
    for rank in range(4):
        file = tmp_path / "relu" / "step0" / f"rank{rank}" / "dump.json"
        dump = json.loads(file.read_text())
        for output in dump["data"][node]["output"]:
            output.update(Max="nan", Min="nan", Mean="nan", Norm="nan")
        file.write_text(json.dumps(dump))
    answer, units = compare(tmp_path / "relu", tmp_path / "golden")
    assert named(answer) == [(0, node, "overflow")]
    (origin,) = answer.origins
    assert origin.ranks == [0, 1, 2, 3]
    assert origin.spread == []
    assert "The same is seen on ranks 0-3." in origin.evidence
    for unit in units:
        assert unit.node_opinions.cls[unit.target.nodes.names.index(node)] == Class.NONFINITE


def test_ranks_are_listed_as_runs_of_neighbours() -> None:
    assert as_ranges([3, 1, 2, 6]) == "1-3, 6"
    assert on_ranks(4, []) == "rank 4"
    assert on_ranks(0, range(4)) == "ranks 0-3"
