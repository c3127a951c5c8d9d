"""A dump has the names of calls that its risk level leaves out (construct.json): where one is at fault, it is named."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from pipeline.comparing import compare  # noqa: E402

from dumpscope.cli.commands.compare import status  # noqa: E402
from healthy.recording import answer_of, recorded  # noqa: E402


def test_a_wrong_clamp_that_msprobes_risk_level_leaves_out_is_named_first(tmp_path: Path) -> None:
    x, w = torch.randn(4, 8), torch.randn(8, 8)

    def run(bound: float) -> None:
        hidden = torch.clamp(x @ w, -bound, bound).view(8, 4)
        other = torch.nn.functional.gelu(x)
        (hidden * 2).sum() + other.sum()

    answer, _ = answer_of(tmp_path, lambda: run(0.5), lambda: run(0.51), numbering="msprobe")
    (origin,) = answer.origins
    assert origin.node == "Tensor.__mul__.0.forward"
    assert origin.hidden
    # No more than that is known of where it is: gelu ran between the two, and has nothing to do with it.
    assert "The last recorded call before it is Functional.gelu.0.forward" in origin.evidence
    assert "called Torch.clamp, Tensor.view in this step" in origin.advice


def test_a_wrong_clamp_is_the_cause_by_default(tmp_path: Path) -> None:
    x = torch.randn(4, 8)
    answer, _ = answer_of(
        tmp_path, lambda: torch.clamp(x * 2, -0.5, 0.5) * 3, lambda: torch.clamp(x * 2, -0.51, 0.51) * 3
    )
    assert [(one.node, one.kind) for one in answer.origins] == [("Torch.clamp.0.forward", "configuration")]


def test_a_dump_that_leaves_a_clamp_out_agrees_with_one_that_has_it(tmp_path: Path) -> None:
    x = torch.randn(4, 8)

    def run() -> None:
        torch.clamp(x * 2, -0.5, 0.5) * 3

    old, new = recorded(tmp_path / "old", run, numbering="msprobe"), recorded(tmp_path / "new", run)
    for target, golden in ((old, new), (new, old)):
        answer, _ = compare(target, golden)
        assert answer.origins == ()
        assert status(answer, "no", incomplete=False) == 0
