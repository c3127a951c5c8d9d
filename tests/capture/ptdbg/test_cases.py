"""What need_replicate writes is read: shown, and compared with the same of another run and with a dump of the calls."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dumpscope.cli import main
from dumpscope.domain.records import Direction, RankDump, item_name
from dumpscope.readers import discover, read_rank
from dumpscope_capture.ptdbg import OverflowEnd, PrecisionDebugger, configure, core


def overflowing(folder: Path, *, value: float = 3e38, generation: str = "6.0") -> Path:
    """Two overflows, one in backward, kept for the checker; the JSON files lie in `folder`."""
    folder.mkdir()
    before = Path.cwd()
    os.chdir(folder)
    try:
        core.forget()
        configure(generation=generation)
        debugger = PrecisionDebugger("./out", hook_name="overflow_check")
        debugger.configure_hook(need_replicate=True, overflow_nums=2)
        debugger.start()
        torch.add(torch.full((2, 3), value), torch.full((2, 3), value), alpha=2)
        x = torch.full((2,), 1e-30, requires_grad=True)
        with pytest.raises(OverflowEnd):
            torch.log(x).sum().backward(torch.tensor(1e38))
        core.forget()
    finally:
        os.chdir(before)
    return folder


def alone(folder: Path) -> Path:
    """The folder without the dump of the same run."""
    shutil.rmtree(folder / "out")
    return folder


def read(path: Path) -> RankDump:
    (ref,) = discover(path).ranks
    return read_rank(ref)


def told(dump: RankDump) -> dict[str, Any]:
    items = dump.items
    return {item_name(dump, item): tuple(items.stats[item].tolist()) for item in range(len(items))}


@pytest.mark.parametrize(("generation", "forward"), [("6.0", "Torch.add.0.forward"), ("4.0", "Torch_add_0_forward")])
def test_arguments_kept_for_the_checker_are_read_as_a_dump(tmp_path: Path, generation: str, forward: str) -> None:
    folder = alone(overflowing(tmp_path / "npu", generation=generation))
    dump = read(folder)
    backward = forward.replace("add", "log").replace("forward", "backward")
    assert dump.nodes.names == [forward, backward]
    assert dump.nodes.direction.tolist() == [Direction.FORWARD, Direction.BACKWARD]
    assert dump.nodes.labels == ["Torch.add", "Torch.log"]
    assert __file__ in dump.nodes.stacks[dump.nodes.stack[0]][0]
    assert not dump.problems
    found = told(dump)
    assert len(found) == 4
    first = next(stats for name, stats in found.items() if name.endswith("input.0"))
    assert first == pytest.approx((3e38, 3e38, 3e38, 3e38 * 6**0.5))
    assert dump.items.stats[3, 0] == pytest.approx(1e38)
    assert dump.items.values[dump.items.value[2]] == "2"
    for word in ("forward", "backward", "stack"):
        (path,) = folder.glob(f"{word}_info_*.json")
        assert read(path).nodes.names == dump.nodes.names


def test_two_runs_and_a_dump_of_the_calls_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    npu, gpu, same = (
        overflowing(tmp_path / name, value=value) for name, value in (("npu", 3e38), ("gpu", 2.9e38), ("same", 3e38))
    )
    dumped = npu / "out" / "ptdbg_dump_v6.0"
    shutil.copytree(dumped, tmp_path / "dumped")
    for folder in (npu, gpu, same):
        assert discover(folder).ranks[0].layout == "ptdbg", "a dump of calls with their results comes first"
        alone(folder)
    assert status("compare", npu, gpu) == 1
    assert status("compare", npu, same) == 0
    assert status("compare", npu, tmp_path / "dumped") == 0, "results and stacks that only a dump has are no difference"
    capsys.readouterr()
    assert status("parse", npu, "Torch.add") == 0
    assert "max 3e+38" in capsys.readouterr().out
    assert status("reproduce", npu, "Torch.add.0") == 2
    assert "need_replicate" in capsys.readouterr().err


def status(*arguments: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return int(str(ended.value.code))


def test_an_archive_of_the_working_directory_is_read(tmp_path: Path) -> None:
    folder = alone(overflowing(tmp_path / "npu"))
    archive = shutil.make_archive(str(tmp_path / "cases"), "zip", tmp_path, "npu")
    assert status("info", archive) == 0
    np.testing.assert_array_equal(
        np.load(next(folder.glob("forward_real_data_*/rank0/Torch.add.0.0.npy"))), np.full((2, 3), 3e38, np.float32)
    )
