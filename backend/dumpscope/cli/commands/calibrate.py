"""`dumpscope calibrate`: tolerances from two runs of code that is known to be right."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Final

from dumpscope.cli.exit_codes import COMPARED, NOT_FULLY_JUDGED
from dumpscope.cli.opening import open_layout
from dumpscope.cli.parser import Argument, Option
from dumpscope.cli.printing import line, styled
from dumpscope.cli.progress import Progress
from dumpscope.domain.options import Options
from dumpscope.export.words import plural
from dumpscope.pipeline.compare.in_process import compare_layouts
from dumpscope.texts import tell
from dumpscope.verdict.calibration import MOST, Calibration, calibrate as measure_noise

LISTED: Final = 10
"""Calls printed per list; the file holds all."""


def calibrate(
    one: Annotated[Path, Argument(metavar="HEALTHY")],
    other: Annotated[Path, Argument(metavar="OTHER")],
    output: Annotated[Path, Option("-o", "--output")] = Path("policy.yaml"),
) -> int:
    """Measure the noise of a healthy pair and write the tolerances for `compare --policy`."""
    with ExitStack() as stack:
        progress = stack.enter_context(Progress(quiet=False))
        first, second = (stack.enter_context(open_layout(path)) for path in (one, other))
        common = tuple(sorted(set(first.steps) & set(second.steps)))  # one run may have more
        options = Options(steps=common) if len(first.steps) + len(second.steps) > 2 else Options()
        outcome = compare_layouts(first, second, options, paths=(str(one), str(other)), progress=progress.say)
        progress.clear()
    found = measure_noise(outcome.units)
    output.write_text(found.policy)
    _print(found)
    line(tell("cli.wrote_use_dumpscope_compare_target_golden", output=output))
    return NOT_FULLY_JUDGED if outcome.incomplete else COMPARED


def _print(found: Calibration) -> None:
    if not found.noise:
        line(styled(tell("cli.no_float_tensors_compared_default_floors"), "yellow"))
    for dtype, noise in sorted(found.noise.items()):
        kept = (
            tell("cli.default_floors_kept")
            if noise.factor == 1.0
            else tell("cli.floors_x", factor=f"{noise.factor:.2g}")
        )
        line(
            tell(
                "cli.bit_equal_99_within_default_floor",
                dtype=f"{dtype.removeprefix('torch.'):10}",
                tensors=plural(noise.tensors, "forward tensor"),
                equal=noise.equal,
                level=f"{noise.level:.2g}",
                kept=kept,
            )
        )
    if found.noise and all(noise.level == 0 for noise in found.noise.values()):
        line(tell("cli.runs_bit_equal_they_show_no"))
    if found.widened:
        line(tell("cli.widened_calls_louder_than_their_dtype", kinds=plural(len(found.widened), "kind")))
        for pattern, factor in found.widened[:LISTED]:
            line(f"  x {factor:<8.2g} {pattern}")
        if len(found.widened) > MOST:
            line(styled(tell("cli.only_written_pair_healthy", most=MOST), "yellow"))
    if found.never:
        line(
            styled(
                tell("cli.calls_differ_by_what_no_floor", kinds=plural(len(found.never), "kind")),
                "yellow",
            )
        )
        for pattern in found.never[:LISTED]:
            line(f"  {pattern}")
