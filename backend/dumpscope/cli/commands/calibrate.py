"""`dumpscope calibrate`: tolerances from two runs of code that is known to be right."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Final

import typer

from dumpscope.cli.exit_codes import COMPARED, NOT_FULLY_JUDGED
from dumpscope.cli.opening import open_layout
from dumpscope.cli.printing import line, plural, styled
from dumpscope.cli.progress import Progress
from dumpscope.domain.options import Options
from dumpscope.pipeline.compare.in_process import compare_layouts
from dumpscope.verdict.calibration import MOST, Calibration, calibrate as measure_noise

LISTED: Final = 10
"""Calls shown of each list; the file holds all."""


def calibrate(
    one: Annotated[Path, typer.Argument(metavar="HEALTHY", help="A dump of code that is known to be right.")],
    other: Annotated[Path, typer.Argument(metavar="OTHER", help="A second run of it, or the same on other hardware.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Policy file to write.")] = Path("policy.yaml"),
) -> int:
    """Measure the noise of a healthy pair and write the tolerances for `compare --policy`."""
    with ExitStack() as stack:
        progress = stack.enter_context(Progress(quiet=False))
        first, second = (stack.enter_context(open_layout(path)) for path in (one, other))
        outcome = compare_layouts(first, second, Options(), paths=(str(one), str(other)), progress=progress.say)
        progress.clear()
    found = measure_noise(outcome.units)
    output.write_text(found.policy)
    _print(found)
    line(f"wrote {output}; use it with: dumpscope compare TARGET GOLDEN --policy {output}")
    return NOT_FULLY_JUDGED if outcome.incomplete else COMPARED


def _print(found: Calibration) -> None:
    if not found.noise:
        line(styled("no float tensors were compared: the default floors stay", "yellow"))
    for dtype, noise in sorted(found.noise.items()):
        kept = "default floors kept" if noise.factor == 1.0 else f"floors x {noise.factor:.2g}"
        line(
            f"{dtype.removeprefix('torch.'):10} {plural(noise.tensors, 'forward tensor')}, {noise.equal} bit-equal,"
            f" 99 % within {noise.level:.2g} of the default floor: {kept}"
        )
    if found.noise and all(noise.level == 0 for noise in found.noise.values()):
        line("the runs are bit-equal: they show no noise to measure, and comparisons of such runs need no wider floor")
    if found.widened:
        line(f"widened for {plural(len(found.widened), 'kind')} of calls that are louder than their dtype:")
        for pattern, factor in found.widened[:LISTED]:
            line(f"  x {factor:<8.2g} {pattern}")
        if len(found.widened) > MOST:
            line(styled(f"only {MOST} were written: is this pair healthy?", "yellow"))
    if found.never:
        line(
            styled(
                f"{plural(len(found.never), 'kind')} of calls differ by what no floor excuses (integers, NaN at other places,"
                " shapes, arguments); they are random or wrong, and stay No:",
                "yellow",
            )
        )
        for pattern in found.never[:LISTED]:
            line(f"  {pattern}")
