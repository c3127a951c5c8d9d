"""`dumpscope compare`: compares two dumps, prints the answer and writes the result files."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from dumpscope.cli.exit_codes import FAIL_ON, of_comparison
from dumpscope.cli.opening import open_layout, open_sides
from dumpscope.cli.options import Json, Ranks, Steps, split_commas
from dumpscope.cli.parser import Argument, Option
from dumpscope.cli.printing import line, styled
from dumpscope.cli.progress import Progress
from dumpscope.domain.options import Options
from dumpscope.domain.result import Answer
from dumpscope.errors import UsageError
from dumpscope.export.answer_text import answer_lines
from dumpscope.pipeline.compare.in_process import Outcome, compare_layouts
from dumpscope.texts import say, tell

_FILES: Final = ("data_mapping", "cell_mapping", "layer_mapping", "fusion", "matches")
"""Options that name a file of `match`."""


def compare(
    target: Annotated[Path, Argument()],
    golden: Annotated[
        Path | None,
        Argument(),
    ] = None,
    reference: Annotated[
        Path | None,
        Option("--reference"),
    ] = None,
    output: Annotated[Path | None, Option("--output", "-o")] = None,
    formats: Annotated[
        list[str] | None,
        Option(
            "--format",
        ),
    ] = None,
    policy: Annotated[str, Option("--policy")] = "default",
    fuzzy: Annotated[
        bool,
        Option("--fuzzy"),
    ] = False,
    data_mapping: Annotated[Path | None, Option("--data-mapping")] = None,
    cell_mapping: Annotated[Path | None, Option("--cell-mapping")] = None,
    layer_mapping: Annotated[Path | None, Option("--layer-mapping")] = None,
    rename: Annotated[
        list[str] | None,
        Option("--rename", metavar="PATTERN=REPLACEMENT"),
    ] = None,
    fusion: Annotated[Path | None, Option("--fusion")] = None,
    matches: Annotated[Path | None, Option("--matches")] = None,
    plan: Annotated[
        Path | None,
        Option("--plan"),
    ] = None,
    step: Steps = None,
    rank: Ranks = None,
    jobs: Annotated[int, Option("--jobs", min=0)] = 0,
    json: Json = False,
    pairs: Annotated[bool, Option("--pairs")] = False,
    dry_run: Annotated[bool, Option("--dry-run")] = False,
    fail_on: Annotated[str, Option("--fail-on")] = "no",
    server: Annotated[str | None, Option("--server", metavar="URL")] = None,
) -> int:
    """Compare two dumps and name the operator that went wrong first. Returns the exit status."""
    return run(
        Request(
            target=target,
            golden=golden,
            reference=reference,
            output=output,
            formats=split_commas(formats),
            policy=policy,
            fuzzy=fuzzy,
            data_mapping=data_mapping,
            cell_mapping=cell_mapping,
            layer_mapping=layer_mapping,
            rename=tuple(rename or ()),
            fusion=fusion,
            matches=matches,
            plan=plan,
            steps=tuple(step or ()),
            ranks=tuple(rank or ()),
            jobs=jobs,
            as_json=json,
            pairs=pairs,
            fail_on=fail_on,
            dry_run=dry_run,
            server=server,
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The command line of one comparison."""

    target: Path
    golden: Path | None = None
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
    server: str | None = None


def run(request: Request) -> int:
    """Compare, print the answer, write the files. Returns the exit status."""
    options = _options(request)
    formats = _formats(request)
    _check_files(request, options)
    if request.server is not None:
        return _compare_on_server(request, request.server, options, formats)
    with ExitStack() as stack:
        sides = stack.enter_context(open_sides(request.target, request.golden))
        if request.dry_run:
            from dumpscope.cli.dry_run import print_dry_run  # noqa: PLC0415

            return print_dry_run(sides.target, sides.golden, options, as_json=request.as_json)
        progress = stack.enter_context(Progress(quiet=request.as_json and not sys.stderr.isatty()))
        target, golden = (stack.enter_context(open_layout(path)) for path in (sides.target, sides.golden))
        reference = request.reference
        third = None if reference is None else (str(reference), stack.enter_context(open_layout(reference)))
        outcome = compare_layouts(
            target,
            golden,
            options,
            paths=sides.names,
            reference=third,
            jobs=request.jobs,
            progress=progress.say,
        )
        progress.clear()
        if request.as_json:
            _print_json(outcome, pairs=request.pairs)
        else:
            print_answer(outcome)
        sys.stdout.flush()
        if request.output is not None:
            progress.say(1.0, tell("cli.writing_results"))
            written = _write(outcome, request.output, formats, options, progress, pairs=request.pairs)
            progress.clear()
            if not request.as_json:
                for path in written:
                    line(tell("cli.wrote", path=path))
    return status(outcome.answer, request.fail_on, incomplete=outcome.incomplete)


def _compare_on_server(request: Request, server: str, options: Options, formats: tuple[str, ...]) -> int:
    from dumpscope.cli.on_server import compare as compare_there  # noqa: PLC0415

    if request.golden is None or request.dry_run:
        raise UsageError(say("cli.server_compares_two_dumps"), hint=say("cli.leave_out_server"))
    sides = [str(side) for side in (request.target, request.golden, request.reference) if side is not None]
    given = {name: value for name, value in options.to_json().items() if value != getattr(Options(), name)}
    return compare_there(
        server,
        sides,
        given,
        formats=formats,
        output=request.output,
        as_json=request.as_json,
        pairs=request.pairs,
        fail_on=request.fail_on,
    )


def print_answer(outcome: Outcome) -> None:
    for text in answer_lines(outcome.answer, outcome.units.places, styled):
        line(text)


def status(answer: Answer, fail_on: str, *, incomplete: bool) -> int:
    """Exit status of a comparison."""
    counts = answer.counts
    doubtful = counts.warning + counts.unmatched_target + counts.unmatched_golden
    return of_comparison(fail_on, diverged=answer.diverged, doubtful=doubtful, incomplete=incomplete)


def _options(request: Request) -> Options:
    if request.fail_on not in FAIL_ON:
        raise UsageError(say("cli.fail_not_one", fail_on=f"{request.fail_on!r}", names=", ".join(FAIL_ON)))
    if request.pairs and not request.as_json and "json" not in request.formats:
        raise UsageError(say("cli.pairs_adds_json_document"), hint=say("cli.give_json_too_o_dir_format"))
    if request.dry_run and request.output is not None:
        raise UsageError(say("cli.dry_run_writes_no_files"), hint=say("cli.leave_out_o_dir"))
    if request.formats and request.output is None:
        raise UsageError(say("cli.format_needs_folder_write"), hint=say("cli.add_o_dir"))
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


def _check_files(request: Request, options: Options) -> None:
    """Raise UsageError, which names the file, before a dump is read: that may take minutes."""
    files = {name: getattr(request, name) for name in _FILES}
    if not options.rename and not request.plan and not any(files.values()):
        return
    from dumpscope.match import check_options  # noqa: PLC0415
    from dumpscope.parallel.plan import parse_plan  # noqa: PLC0415

    check_options(Options(rename=options.rename))
    for name, path in (*files.items(), ("plan", request.plan)):
        try:
            if path is not None and name == "plan":
                parse_plan(options.parallel)
            elif path is not None:
                check_options(Options(**{name: getattr(options, name)}))
        except UsageError as error:
            raise UsageError(error.detail, hint=error.hint, where=str(path)) from error


def _formats(request: Request) -> tuple[str, ...]:
    if request.output is None:
        return ()
    from dumpscope.export.files import PAGE, check_formats, require_writable  # noqa: PLC0415

    require_writable(request.output)
    formats = check_formats(request.formats or ("csv",))
    if PAGE in formats:
        from dumpscope.api.one_file.page import require_page  # noqa: PLC0415

        require_page()
    return formats


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
        raise UsageError(say("pipeline.cannot_read", reason=error.strerror), where=str(path)) from error
    except UnicodeDecodeError as error:
        raise UsageError(say("cli.not_utf_8_text"), where=str(path)) from error


def _print_json(outcome: Outcome, *, pairs: bool) -> None:
    from dumpscope.export.document import json_text  # noqa: PLC0415
    from dumpscope.export.table.unit_table import Table  # noqa: PLC0415

    for piece in json_text(outcome.answer, map(Table, outcome.units) if pairs else None):
        sys.stdout.write(piece)


def _write(
    outcome: Outcome, folder: Path, formats: tuple[str, ...], options: Options, progress: Progress, *, pairs: bool
) -> list[Path]:
    from functools import partial  # noqa: PLC0415

    from dumpscope.export.files import PAGE, write_files  # noqa: PLC0415
    from dumpscope.export.table.unit_table import Table  # noqa: PLC0415
    from dumpscope.pipeline.results.report import report  # noqa: PLC0415
    from dumpscope.pipeline.results.save import save_file  # noqa: PLC0415

    def table(place: int) -> Table:
        return Table(outcome.units[place])

    tables = [partial(table, place) for place in range(len(outcome.units))]
    others = [name for name in formats if name != PAGE]
    written = write_files(
        folder, others, outcome.answer, tables, lambda: report(outcome.answer, outcome.units), pairs=pairs
    )
    result = save_file(folder / "result.db", outcome, options)
    if PAGE in formats:
        from dumpscope.cli.one_file import write_page  # noqa: PLC0415

        name = f"{outcome.answer.target.path} ⇄ {outcome.answer.golden.path}"
        said = tell("cli.writing_page")
        written.append(write_page(folder / "page.html", result, name, lambda share: progress.say(share, said)))
    return [*written, result]
