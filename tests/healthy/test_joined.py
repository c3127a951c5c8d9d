"""Two ranks with half of the rows each against one process with all of them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402, N812

from dumpscope.domain.options import Options  # noqa: E402
from dumpscope.domain.result import Answer  # noqa: E402
from dumpscope.pipeline.compare.in_process import compare_layouts  # noqa: E402
from dumpscope.readers import discover  # noqa: E402
from healthy.recording import recorded  # noqa: E402


def rows(first: int, last: int) -> Any:
    """Tokens are counted, a table is made of numbers alone, and the loss is a mean."""
    ids = torch.arange(3, 27).reshape(4, 6)[first:last]
    mask = torch.ones_like(ids)
    words = torch.randn(32, 8, generator=torch.Generator().manual_seed(1)).requires_grad_()
    head = torch.randn(5, 8, generator=torch.Generator().manual_seed(2)).requires_grad_()

    def run() -> None:
        table = torch.cos(torch.arange(8.0) / 8)
        seen = mask.sum() > 0
        made = F.linear(torch.tanh(F.embedding(ids, words) * table), head) * seen
        F.cross_entropy(made.flatten(0, 1), ids.flatten() % 5).backward()

    return run


def ranked(folder: Path, parts: int, task: str) -> Path:
    """A dump with a rank for each part of the rows."""
    size = 4 // parts
    for rank in range(parts):
        made = recorded(folder / f"made{rank}", rows(rank * size, (rank + 1) * size), task=task)
        (one,) = (made / "step0").iterdir()
        shutil.move(one, folder / "dump" / "step0" / f"rank{rank}" if parts > 1 else folder / "dump" / "step0" / "rank")
    return folder / "dump"


def answer(target: Path, golden: Path) -> Answer:
    layouts = discover(target), discover(golden)
    return compare_layouts(*layouts, Options(), paths=(str(target), str(golden)), jobs=1).answer


@pytest.mark.parametrize("task", ["statistics", "tensor"])
@pytest.mark.parametrize("parts", [(2, 1), (2, 4), (4, 2)])
def test_what_every_rank_counts_is_added(tmp_path: Path, parts: tuple[int, int], task: str) -> None:
    for name, count in zip(("target", "golden"), parts, strict=True):
        (tmp_path / name / "dump" / "step0").mkdir(parents=True)
        ranked(tmp_path / name, count, task)
    found = answer(tmp_path / "target" / "dump", tmp_path / "golden" / "dump")
    assert (found.origins, found.counts.no) == ([], 0)
