"""`dumpscope serve`: the web UI and the REST interface."""

from __future__ import annotations

import errno
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

from dumpscope.cli.ending import Ending
from dumpscope.cli.exit_codes import COMPARED
from dumpscope.cli.options import DataDir, Host, Port
from dumpscope.cli.parser import Argument, Option
from dumpscope.cli.printing import line
from dumpscope.errors import DumpscopeError, UsageError
from dumpscope.pipeline.tasks.temporary_folder import TemporaryFolder
from dumpscope.settings import Settings
from dumpscope.texts import say, tell


def serve(
    results: Annotated[
        list[Path] | None,
        Argument(metavar="[RESULT]..."),
    ] = None,
    host: Host = None,
    port: Port = None,
    data_dir: DataDir = None,
    root: Annotated[list[Path] | None, Option("--root")] = None,
    source_root: Annotated[list[str] | None, Option("--source-root", metavar="[PREFIX=]DIR")] = None,
    webhook_host: Annotated[list[str] | None, Option("--webhook-host", metavar="HOST[:PORT]")] = None,
) -> int:
    """Serve the web UI and the REST interface, for the data folder or for result files."""
    with Ending() as ending:
        _serve(
            ending,
            results or [],
            host=host,
            port=port,
            data_dir=data_dir,
            roots=root or [],
            source_roots=source_root or [],
            webhook_hosts=webhook_host or [],
        )
    return COMPARED


def _serve(
    ending: Ending,
    results: Sequence[Path],
    *,
    host: str | None,
    port: int | None,
    data_dir: Path | None,
    roots: Sequence[Path],
    source_roots: Sequence[str],
    webhook_hosts: Sequence[str],
) -> None:
    """Serve until interrupted. results: files to show as copies, instead of a data folder"""
    if not results:
        chosen = settings(
            host=host,
            port=port,
            data_dir=data_dir,
            roots=roots,
            source_roots=source_roots,
            webhook_hosts=webhook_hosts,
        )
        run_server(ending, chosen)
        return
    if data_dir is not None:
        raise UsageError(
            say("cli.result_opened_copy_ends_server_data"),
            hint=say("cli.give_one_them"),
        )
    with ending.own(_temporary) as folder:
        chosen = settings(
            host=host, port=port, data_dir=folder, roots=roots, source_roots=source_roots, database_url=""
        )
        page = _copy_results(results, folder / "dumpscope.db")
        run_server(ending, chosen, page, results=[str(result.absolute()) for result in results])


def _copy_results(results: Sequence[Path], file: Path) -> str:
    """Copy the result files and say so. Returns the page to open."""
    from dumpscope.pipeline.results.result_files import open_copies  # noqa: PLC0415

    opened = open_copies(results, file)
    for one in opened:
        count = len(one.comparisons)
        told = tell("cli.comparison") if count == 1 else tell("cli.comparisons", count=count)
        line(
            tell(
                "cli.copy",
                file=one.file,
                told=told,
                part=tell("cli.older") if one.older else "",
            )
        )
    line(tell("cli.notes_other_policies_whatever_else_you"))
    known = [comparison for one in opened for comparison in one.comparisons]
    return f"/comparisons/{known[0]}" if len(known) == 1 else "/"


def _temporary() -> tuple[Path, Callable[[], None]]:
    """A folder for the copy, and the function that removes it."""
    try:
        room = TemporaryFolder("result")
    except OSError as error:
        raise DumpscopeError(
            say("cli.no_folder_copy_can_made", reason=error.strerror),
            where=tempfile.gettempdir(),
            hint=say("cli.set_tmpdir"),
        ) from error

    def remove() -> None:
        room.close()
        while room.path.exists():  # fails if a thread of the starting server made a file in it meanwhile
            shutil.rmtree(room.path, ignore_errors=True)

    return room.path, remove


def settings(
    *,
    host: str | None = None,
    port: int | None = None,
    data_dir: Path | None = None,
    roots: Sequence[Path] = (),
    source_roots: Sequence[str] = (),
    webhook_hosts: Sequence[str] = (),
    database_url: str | None = None,
) -> Settings:
    """Settings from the command line, then the environment. Raises UsageError with one line that says what is wrong."""
    from pydantic import ValidationError  # noqa: PLC0415
    from pydantic_settings import SettingsError  # noqa: PLC0415

    given: dict[str, Any] = {
        "host": host,
        "port": port,
        "data_dir": data_dir,
        "roots": list(roots) or None,
        "source_roots": list(source_roots) or None,
        "webhook_hosts": list(webhook_hosts) or None,
        "database_url": database_url,
    }
    for root in roots:
        if not root.is_dir():
            raise UsageError(say("api.not_folder"), where=str(root), hint=say("cli.root_names_folders_whose_dumps_may"))
    try:
        return Settings(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        cause = first.get("ctx", {}).get("error")
        if isinstance(cause, ValueError):  # of our own: its sentence is in the catalogue
            raise UsageError(cause.args[0]) from error
        raise UsageError(f"{where}: {first['msg']}") from error
    except SettingsError as error:
        raise UsageError(str(error)) from error


def run_server(ending: Ending, chosen: Settings, page: str = "/", results: Sequence[str] = ()) -> None:
    """Listen, print the address, and serve. page: path of the printed address; results: files that are served as copies"""
    import uvicorn  # noqa: PLC0415

    from dumpscope.api.app import create_app  # noqa: PLC0415
    from dumpscope.api.http.header_timeout import TimedHeads  # noqa: PLC0415
    from dumpscope.index.store.database import Database  # noqa: PLC0415

    class Server(uvicorn.Server):
        """uvicorn handles a signal only after the start (before, it would wait for its end); until then `ending` does."""

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            if self.started:
                ending.asked = sig
                super().handle_exit(sig, frame)
            else:
                ending.end(sig, frame)

    Database.open(chosen.database).close()  # here an error is one clear line; later it would be a log
    with closing(_listen(chosen.host, chosen.port)) as listener:
        app = create_app(chosen, results)
        line(tell("cli.dumpscope_serves", address=address(chosen, listener), page=page))
        line(tell("cli.ctrl_c_ends"))
        server = Server(
            uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=3, http=TimedHeads)
        )
        ending.begin_serving(server)
        sys.stdout.flush()
        server.run(sockets=[listener])
    if not server.started:
        raise DumpscopeError(say("cli.server_did_not_start"), hint=say("cli.lines_above_say_why"))


def address(chosen: Settings, listener: socket.socket) -> str:
    """The address to open in a browser."""
    host = "127.0.0.1" if chosen.host in ("0.0.0.0", "::") else chosen.host
    return f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, proto, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, proto)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(where)
            listener.listen(128)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise UsageError(
                say("cli.port_use", port=port), hint=say("cli.choose_another_port_0_takes_free")
            ) from error
        raise UsageError(say("cli.cannot_listen_port", host=host, port=port, reason=error.strerror or error)) from error
    return listener
