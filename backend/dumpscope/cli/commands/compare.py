"""`dumpscope compare`: two dumps in, the answer out, then the files."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dumpscope.cli.answer import print_answer
from dumpscope.cli.app import DIVERGED, FINE, INCOMPLETE
from dumpscope.cli.opening import opened
from dumpscope.cli.printing import line
from dumpscope.cli.progress import Progress
from dumpscope.domain.options import Options
from dumpscope.domain.result import Answer
from dumpscope.errors import UsageError
from dumpscope.pipeline.compare.in_process import Outcome, compare_layouts

FAIL_ON: Final = ("no", "warning", "never")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The command line of one comparison, as given."""

    target: Path
    golden: Path
    reference: Path | None = None
    output: Path | None = None
    formats: tuple[str, ...] = ()
    policy: str = "default"
    fuzzy: bool = False
    data_mapping: Path | None = None
    cell_mapping: Path | None = None
    layer_mapping: Path | None = None
    fusion: Path | None = None
    matches: Path | None = None
    plan: Path | None = None
    rename: tuple[str, ...] = ()
    dry_run: bool = False
    steps: tuple[int, ...] = ()
    ranks: tuple[int, ...] = ()
    jobs: int = 0
    as_json: bool = False
    pairs: bool = False
    fail_on: str = "no"


def run(request: Request) -> int:
    """Compare, print the answer, write the files. Returns the exit status."""
    options = _options(request)
    formats = _formats(request)
    if request.dry_run:
        from dumpscope.cli.commands.preview import run as preview  # noqa: PLC0415

        return preview(request.target, request.golden, options, as_json=request.as_json)
    with ExitStack() as stack:
        progress = stack.enter_context(Progress(quiet=request.as_json and not sys.stderr.isatty()))
        target, golden = (stack.enter_context(opened(path)) for path in (request.target, request.golden))
        reference = request.reference
        third = None if reference is None else (str(reference), stack.enter_context(opened(reference)))
        outcome = compare_layouts(
            target,
            golden,
            options,
            paths=(str(request.target), str(request.golden)),
            reference=third,
            jobs=request.jobs,
            progress=progress.say,
        )
        progress.clear()
        if request.as_json:
            _print_json(outcome, pairs=request.pairs)
        else:
            print_answer(outcome.answer, outcome.units.places)
        sys.stdout.flush()
        if request.output is not None:
            progress.say(1.0, "writing results")
            written = _write(outcome, request.output, formats, options, pairs=request.pairs)
            progress.clear()
            if not request.as_json:
                for path in written:
                    line(f"wrote {path}")
    return status(outcome.answer, request.fail_on, incomplete=outcome.incomplete)


def status(answer: Answer, fail_on: str, *, incomplete: bool) -> int:
    """Exit status of a comparison. A divergence goes first: what could not be read does not undo it."""
    counts = answer.counts
    diverged = bool(answer.origins) or counts.no > 0
    if fail_on == "warning":
        diverged = diverged or counts.warning + counts.unmatched_target + counts.unmatched_golden > 0
    if diverged and fail_on != "never":
        return DIVERGED
    return INCOMPLETE if incomplete else FINE


def _options(request: Request) -> Options:
    if request.fail_on not in FAIL_ON:
        raise UsageError(f"--fail-on {request.fail_on!r} is not one of {', '.join(FAIL_ON)}")
    if request.pairs and not request.as_json and "json" not in request.formats:
        raise UsageError("--pairs adds to the JSON document", hint="give --json too, or -o DIR --format json")
    if request.dry_run and request.output is not None:
        raise UsageError("--dry-run writes no files", hint="leave out -o DIR")
    if request.formats and request.output is None:
        raise UsageError("--format needs a folder to write to", hint="add -o DIR")
    return Options(
        policy=_policy(request.policy),
        fuzzy=request.fuzzy,
        data_mapping=_text(request.data_mapping),
        cell_mapping=_text(request.cell_mapping),
        layer_mapping=_text(request.layer_mapping),
        fusion=_text(request.fusion),
        matches=_text(request.matches),
        parallel=_text(request.plan),
        rename=request.rename,
        steps=request.steps,
        ranks=request.ranks,
    )


def _formats(request: Request) -> tuple[str, ...]:
    if request.output is None:
        return ()
    from dumpscope.export.files import check_formats, require_writable  # noqa: PLC0415

    require_writable(request.output)
    return check_formats(request.formats or ("csv",))


def _policy(named: str) -> str:
    """Name of a built-in policy, or the text of the file."""
    from dumpscope.verdict.policy import load_policy  # noqa: PLC0415

    path = Path(named)
    text = _text(path) or "" if path.is_file() else named
    try:
        load_policy(text)
    except UsageError as error:
        raise UsageError(error.detail, hint=error.hint, where=str(path) if path.is_file() else None) from error
    return text


def _text(path: Path | None) -> str | None:
    if path is None:
        return None
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", where=str(path)) from error
    except UnicodeDecodeError as error:
        raise UsageError("is not UTF-8 text", where=str(path)) from error


def _print_json(outcome: Outcome, *, pairs: bool) -> None:
    from dumpscope.export.document import json_text  # noqa: PLC0415
    from dumpscope.export.table.unit_table import Table  # noqa: PLC0415

    for piece in json_text(outcome.answer, map(Table, outcome.units) if pairs else None):
        sys.stdout.write(piece)


def _write(outcome: Outcome, folder: Path, formats: tuple[str, ...], options: Options, *, pairs: bool) -> list[Path]:
    from functools import partial  # noqa: PLC0415

    from dumpscope.export.files import write_files  # noqa: PLC0415
    from dumpscope.export.table.unit_table import Table  # noqa: PLC0415
    from dumpscope.pipeline.results.report import report  # noqa: PLC0415
    from dumpscope.pipeline.results.save import keep_file  # noqa: PLC0415

    def table(place: int) -> Table:
        return Table(outcome.units[place])

    tables = [partial(table, place) for place in range(len(outcome.units))]
    written = write_files(
        folder, formats, outcome.answer, tables, lambda: report(outcome.answer, outcome.units), pairs=pairs
    )
    return [*written, keep_file(folder / "result.db", outcome, options)]
