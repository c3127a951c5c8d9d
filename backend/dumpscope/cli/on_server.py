"""What commands do on a server: send a dump or the results of a pre-check, have two dumps compared, and show the answer."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from dumpscope.cli.exit_codes import COMPARED, of_comparison
from dumpscope.cli.printing import line
from dumpscope.cli.progress import Progress
from dumpscope.client import Client, Comparison, Dump, Job, ServerError
from dumpscope.domain.coverage import AGREES, DIVERGED
from dumpscope.errors import NotFoundError, UsageError
from dumpscope.export.words import safe
from dumpscope.pipeline.tasks.temporary_folder import TemporaryFolder
from dumpscope.texts import current_language, say, tell

LIKELY: Final = 100
"""Dumps of a name or path that are looked through."""


def open_client(server: str) -> tuple[Client, str]:
    """A client, and the id in the address where it is that of a page (http://HOST:PORT/dumps/ID)."""
    base, _, page = server.rstrip("/").partition("/dumps/")
    return Client(base), page.partition("/")[0].partition("?")[0]


def send_precheck(server: str, dump: Path, lines: Iterable[str]) -> int:
    """Send lines of precheck.jsonl to the dump with this path on the server, or to the dump in the address.

    server: http://HOST:PORT, or http://HOST:PORT/dumps/ID; DUMPSCOPE_TOKEN is its token
    Returns the number of stored rows. Raises UsageError, NotFoundError, ServerError."""
    client, given = open_client(server)
    with client:
        wanted = str(dump.resolve())
        found = given or next((one.id for one in client.dumps(wanted[-400:]) if one.path == wanted), "")
        if not found:
            hint = say("cli.give_address_page_dumps_id")
            raise NotFoundError(say("cli.has_no_dump_path", base=server), where=wanted, hint=hint)
        return client.import_prechecks(found, lines=lines)


def find_or_send(client: Client, given: str, name: str | None, progress: Progress) -> Dump:
    """The dump that a word of the command line means: a file or folder here is sent; else it is the id, name or path of a dump
    that the server knows; else a path on the server, which is registered."""
    watch = _watch(progress, given)
    if Path(given).exists():

        def sent(done: int, total: int) -> None:
            progress.say(done / max(total, 1), say("cli.sending", path=given, done=done >> 20, total=total >> 20))

        return client.upload(given, name=name, sent=sent, watch=watch)
    known = _known(client, given)
    return client.register(given, name=name, watch=watch) if known is None else client.wait(known, watch=watch)


def _known(client: Client, given: str) -> Dump | None:
    if given.isalnum():
        try:
            return client.dump(given)
        except ServerError as error:
            if error.reply_status != 404:
                raise
    for number, one in enumerate(client.dumps(given[-400:])):
        if number == LIKELY:
            break
        if given in (one.path, one.name) and one.status != "failed":
            return one
    return None


def upload(server: str, path: Path, name: str | None) -> int:
    """Send a dump and print its page. Returns the exit status."""
    client, _ = open_client(server)
    with client, Progress() as progress:
        dump = find_or_send(client, str(path), name, progress)
        progress.clear()
    line(tell("cli.dump_is_at", name=dump.name, address=f"{client.home}/dumps/{dump.id}"))
    return COMPARED


def compare(
    server: str,
    sides: Sequence[str],
    options: Mapping[str, Any],
    *,
    formats: tuple[str, ...],
    output: Path | None,
    as_json: bool,
    pairs: bool,
    fail_on: str,
) -> int:
    """Have two dumps compared, print the answer, fetch the files. sides: target, golden, and a reference if there is one.
    Returns the exit status."""
    unknown = [one for one in formats if one not in _FILES]
    if unknown:
        raise UsageError(
            say("cli.server_does_not_write", format=unknown[0]), hint=say("domain.known", names=", ".join(_FILES))
        )
    client, _ = open_client(server)
    with client, ExitStack() as stack:
        progress = stack.enter_context(Progress(quiet=as_json and not sys.stderr.isatty()))
        known: dict[int, Dump] = {}
        for place in sorted(range(len(sides)), key=lambda place: Path(sides[place]).exists()):
            known[place] = find_or_send(
                client, sides[place], None, progress
            )  # what is sent comes last: it may take hours
        target, golden, *third = (known[place] for place in range(len(sides)))
        reference = third[0] if third else None
        found = client.compare(target, golden, reference=reference, watch=_watch(progress, ""), **options)
        progress.clear()
        room = TemporaryFolder("answer")
        stack.callback(room.close)
        kind = "json" if as_json else "txt"
        file = client.export(found, kind, room.path / f"answer.{kind}", pairs=pairs, lang=current_language())
        text = file.read_text(encoding="utf-8")
        sys.stdout.write(text if as_json else safe(text))
        page = f"{client.home}/comparisons/{found.id}"
        if not as_json:
            line(tell("cli.page_of_comparison", address=page))
        sys.stdout.flush()
        if output is not None:
            output.mkdir(parents=True, exist_ok=True)
            for one in (*formats, "db"):
                path = client.export(found, _KINDS.get(one, one), output / _FILES[one], pairs=pairs)
                if not as_json:
                    line(tell("cli.wrote", path=path))
    return _status(found, fail_on)


_KINDS: Final = {"junit": "junit.xml"}
_FILES: Final = {
    "csv": "compare_result.csv",
    "xlsx": "compare_result.xlsx",
    "json": "export.json",
    "html": "report.html",
    "junit": "junit.xml",
    "db": "result.db",
}


def _status(found: Comparison, fail_on: str) -> int:
    counts: Mapping[str, int] = found.counts or {}
    doubtful = sum(counts.get(word, 0) for word in ("warning", "unmatched_target", "unmatched_golden"))
    diverged = found.outcome == DIVERGED
    return of_comparison(
        fail_on, diverged=diverged, doubtful=doubtful, incomplete=not diverged and found.outcome != AGREES
    )


def _watch(progress: Progress, subject: str) -> Callable[[Job], None]:
    def watch(job: Job) -> None:
        progress.say(job.progress, f"{subject} {job.message}".strip())

    return watch
