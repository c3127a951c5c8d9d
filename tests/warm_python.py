"""A `python` whose processes have torch imported already: forks of one process that does nothing else.

A fresh interpreter needs more than two seconds to import torch and to take it apart at its end, a fork hundredths. A program
has its own folder, environment, arguments, streams and exit status, signals reach it, and it ends with whoever started it. A
test of how an interpreter starts (its flags, the order of imports, variables that torch reads when it is imported, modules that
shall not be there) runs `sys.executable` instead.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import gc
import importlib
import json
import multiprocessing.spawn
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

COLD: Final = sys.executable
"""The interpreter itself."""

DUMPSCOPE: Final = (
    "dumpscope.cli.app,dumpscope.cli.commands.compare,dumpscope.cli.commands.info,dumpscope.cli.commands.parse"
)
"""Modules of the command line that most of its commands need."""

SERVER: Final = f"{DUMPSCOPE},dumpscope.cli.commands.serve,dumpscope.api.app,alembic.command,uvicorn"
"""Modules of a server."""

CLIENT: Final = """#!{python} -IS
import os, signal, socket
line = socket.socket(socket.AF_UNIX)
line.connect({address!r})
with open("/proc/self/cmdline", "rb") as words, open("/proc/self/environ", "rb") as environment:
    parts = [os.getcwd().encode(), words.read().split(b"\\0", 3)[3], environment.read()]
def inherited(stream):
    try:
        return os.get_inheritable(stream)
    except OSError:
        return False
streams = [0, 1, 2, *(stream for stream in map(int, os.listdir("/proc/self/fd")) if stream > 2 and inherited(stream))]
parts.append(bytes(str(streams), "ascii"))
body = b"".join(len(part).to_bytes(4, "little") + part for part in parts)
socket.send_fds(line, [len(body).to_bytes(4, "little")], streams)
line.sendall(body)
program = int.from_bytes(line.recv(4), "little")
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    if signal.getsignal(number) is not signal.SIG_IGN:
        signal.signal(number, lambda number, _: os.kill(program, number))
status = int.from_bytes(line.recv(4), "little", signed=True)
if status < 0 and status != -signal.SIGKILL:
    signal.signal(-status, signal.SIG_DFL)
if status < 0:
    os.kill(os.getpid(), -status)
os._exit(status)
"""
"""Hands its words, folder, environment, streams and inherited pipes to the server, and ends as the program does."""

MOST_STREAMS: Final = 64

_SERVERS: dict[tuple[int, str, str], str] = {}
"""(process, interpreter, modules) -> path of its python. A process that a test forked starts a server of its own."""


def warm_python(modules: str = "torch,torch._dynamo", python: str = COLD) -> str:
    """Path of a python that has imported these modules, separated by commas. It is there until this process ends.

    python: the interpreter that imports them

    Most programs bring dynamo: an optimizer's step does, and whatever computes types on the meta device.
    """
    if not hasattr(os, "pidfd_open"):  # not Linux
        return python
    key = os.getpid(), python, modules
    if key not in _SERVERS:
        folder = Path(tempfile.mkdtemp(prefix="warm-", dir="/tmp"))  # a socket's path holds 107 bytes at most
        address, client = folder / "socket", folder / "python"
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(address))
            listener.listen(64)
            os.set_inheritable(listener.fileno(), True)
            told = subprocess.Popen(
                [python, __file__, str(listener.fileno()), str(client), modules],
                stdin=subprocess.PIPE, pass_fds=[listener.fileno()],
            )  # fmt: skip
        client.write_text(CLIENT.format(python=COLD, address=str(address)))
        client.chmod(0o755)
        _SERVERS[key] = str(client)
        atexit.register(_stop, told, folder, os.getpid())
    return _SERVERS[key]


def _stop(server: subprocess.Popen[bytes], folder: Path, process: int) -> None:
    if os.getpid() != process:
        return
    server.communicate()  # the end of its input is its end
    shutil.rmtree(folder, ignore_errors=True)


# -- in the server -----------------------------------------------------------------------------------------------------


def serve(listener: socket.socket) -> tuple[str, list[str], dict[str, str]]:
    """Fork for every connection; returns folder, words and environment, in the program's own process alone."""
    while True:
        readable, _, _ = select.select([listener, 0], [], [])
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if 0 in readable:
            os._exit(0)
        line, _ = listener.accept()
        if os.fork():
            line.close()
            continue
        listener.close()
        size, streams, _, _ = socket.recv_fds(line, 4, MOST_STREAMS)
        folder, words, environment, numbers = _parts(_exactly(line, int.from_bytes(size, "little")))
        program = os.fork()
        if program:
            for stream in streams:
                os.close(stream)
            _watch(line, program)
        line.close()
        os.setsid()
        aside = [fcntl.fcntl(stream, fcntl.F_DUPFD, 512) for stream in streams]
        for stream in streams:
            os.close(stream)
        for number, stream in zip(json.loads(numbers), aside, strict=True):
            os.dup2(stream, number)
            os.close(stream)
        pairs = (os.fsdecode(one).partition("=") for one in environment.split(b"\0") if one)
        return os.fsdecode(folder), os.fsdecode(words).split("\0")[:-1], {name: value for name, _, value in pairs}


def _exactly(line: socket.socket, size: int) -> bytes:
    found = bytearray()
    while len(found) < size:
        part = line.recv(size - len(found))
        if not part:  # whoever asked was killed
            os._exit(1)
        found += part
    return bytes(found)


def _parts(body: bytes) -> list[bytes]:
    found, place = [], 0
    while place < len(body):
        end = place + 4 + int.from_bytes(body[place : place + 4], "little")
        found.append(body[place + 4 : end])
        place = end
    return found


def _watch(line: socket.socket, program: int) -> None:
    """Say how the program ended; end it with whoever started it."""
    line.send(program.to_bytes(4, "little"))
    ended = os.pidfd_open(program)
    readable, _, _ = select.select([ended, line], [], [])
    if ended not in readable:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(program, signal.SIGKILL)
    _, status = os.waitpid(program, 0)
    with contextlib.suppress(BrokenPipeError):
        line.send(os.waitstatus_to_exitcode(status).to_bytes(4, "little", signed=True))
    os._exit(0)


def become(folder: str, words: list[str], environment: dict[str, str]) -> None:
    """Run a program as `python words` would."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    if "torch" in sys.modules and environment.get("OMP_NUM_THREADS"):
        sys.modules["torch"].set_num_threads(int(environment["OMP_NUM_THREADS"]))
    sys.orig_argv = [sys.executable, *words]
    words = [word for place, word in enumerate(words) if place or word != "-B"]
    isolated = words[0] == "-I"
    first, *rest = words[isolated:]
    named = [] if isolated else [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path]
    own = {"-m": folder, "-c": ""}.get(first, str(Path(first).resolve().parent))
    sys.path[:] = [*([] if isolated else [own]), *named, *SEARCHED]
    if first == "-m":
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        sys.argv = ["-c", *rest[1:]]
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(rest[0], "<string>", "exec"), main.__dict__)
    else:
        sys.argv = [first, *rest]
        runpy.run_path(first, run_name="__main__")


def finish(program: Callable[[], None]) -> int:
    """Exit status of a program, after all that an interpreter does at its end but for taking modules apart, which takes long."""
    status: Any = 0
    try:
        program()
    except SystemExit as end:
        status = end.code or 0
        if not isinstance(status, int):
            print(status, file=sys.stderr)
            status = 1
    except BaseException:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
        status = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    return int(status) & 255


if __name__ == "__main__":
    descriptor, client, modules = sys.argv[1:]
    del sys.path[0]  # this folder has names that others may mean by theirs
    for module in modules.split(","):
        importlib.import_module(module)
    gc.collect()
    gc.freeze()  # what was imported is not looked at again: a fork would have to copy it
    inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    SEARCHED: Final = [path for path in sys.path if path not in inherited]
    request = serve(socket.socket(fileno=int(descriptor)))
    sys.executable = client  # what the program starts in turn is a fork too
    multiprocessing.spawn.set_executable(client)
    os._exit(finish(lambda: become(*request)))
