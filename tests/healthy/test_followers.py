"""What follows from a cause is no second one: numbers that the program reads from tensors, and single numbers below zero."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from pipeline.comparing import compare  # noqa: E402
from torch.nn import functional as F  # noqa: E402, N812

from healthy.recording import recorded  # noqa: E402
from healthy.test_updates import Scaled  # noqa: E402


def dump(path: Path, *, wrong: bool, scale: float | None = None) -> Path:
    torch.manual_seed(3)
    rows = torch.randn(6, 8)

    def step() -> Any:
        with Scaled("gelu" if wrong else ""):
            found = F.gelu(rows).mean()
            read = found.item() if scale is None else scale
            return (rows * read).sum() + (rows + read).sum() - (found - 10).neg()

    return recorded(path, step, task="tensor")


def test_a_number_that_was_read_from_wrong_data_is_no_second_cause(tmp_path: Path) -> None:
    answer, _ = compare(dump(tmp_path / "target", wrong=True), dump(tmp_path / "golden", wrong=False))
    assert [(one.node, one.kind) for one in answer.origins] == [("Functional.gelu.0.forward", "computation")]


def test_a_number_that_was_written_otherwise_is_a_second_cause(tmp_path: Path) -> None:
    answer, _ = compare(
        dump(tmp_path / "target", wrong=True, scale=0.25), dump(tmp_path / "golden", wrong=False, scale=0.125)
    )
    kinds = [(one.node, one.kind) for one in answer.origins]
    assert kinds[0] == ("Functional.gelu.0.forward", "computation")
    assert ("Tensor.__mul__.0.forward", "configuration") in kinds
