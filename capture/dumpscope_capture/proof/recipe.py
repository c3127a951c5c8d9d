"""A run whose error messages can be trusted: it waits for every kernel, is a single process and keeps its settings and logs.

DIR/20250131-120000-4711/recipe.json   command, environment, versions, how it ended
                         device_log/   logs of the device's runtime
                         crash.txt     Python's stacks if the process was killed by a signal
"""

from __future__ import annotations

import atexit
import faulthandler
import json
import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any, Final, NoReturn

from dumpscope_capture.config import Config
from dumpscope_capture.context import LOG, rank
from dumpscope_capture.device.environment import describe_run
from dumpscope_format.recipe import BLOCKING, CRASH_FILE, LOG_FOLDER, LOG_VARIABLE, RUN_FILE

_FOLDER_VARIABLE: Final = "DUMPSCOPE_RECIPE_FOLDER"
"""Passes the folder to the process that replaces this one."""

_KEPT: Final = ("devices", "environment", "host", "numerics", "pid", "seeds", "versions")


class RecipeError(ValueError):
    """Why a run cannot follow the recipe."""


class Recipe:
    """One run by the recipe. Made by `follow`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._began = time.time()
        self._crash = open(folder / CRASH_FILE, "w", encoding="utf-8")  # noqa: SIM115 - open until the process ends
        self._outcome: dict[str, Any] = {"status": "running"}

    def begin(self) -> None:
        faulthandler.enable(self._crash)
        self._write()
        pid = os.getpid()
        atexit.register(lambda: self._end() if os.getpid() == pid else None)

    def note_exception(self, error: BaseException) -> None:
        """Note the exception that ended the script; the caller raises it again."""
        if isinstance(error, SystemExit):
            self._outcome = {"status": f"exit {error.code or 0}"}
        else:
            self._outcome = {
                "status": "raised",
                "error": "".join(traceback.format_exception(type(error), error, error.__traceback__)).strip(),
            }

    def _end(self) -> None:
        if self._outcome["status"] == "running":
            self._outcome = {"status": "exit 0"}
        self._write()
        faulthandler.disable()
        self._crash.close()
        if not os.path.getsize(self._crash.name):
            os.unlink(self._crash.name)

    def _write(self) -> None:
        """Written again at the end, as only devices that the program has used by then can be named."""
        known = describe_run(Config(), rank(), 0)
        document = {
            "schema": 1,
            "command": _command_line(),
            "folder": os.getcwd(),
            "began": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._began)),
            "seconds": round(time.time() - self._began, 3),
            "blocking": sorted(BLOCKING.values()),
            "device_log": str(self.folder / LOG_FOLDER),
            **{key: known[key] for key in _KEPT},
            **self._outcome,
        }
        fresh = self.folder / f".{RUN_FILE}"
        fresh.write_text(json.dumps(document, indent=1), encoding="utf-8")
        os.replace(fresh, self.folder / RUN_FILE)


def follow(base: str) -> Recipe:
    """Make the folder of a run below `base` and begin the run. Does not return if the process must be restarted.

    A device's runtime may read its environment when torch is imported. So a process that was started without the switches is
    replaced by one with them. Raises RecipeError if this is one of several processes.
    """
    if rank() is not None:
        raise RecipeError("it is for one process: with several processes the failing one cannot be named")
    wanted = dict.fromkeys(BLOCKING.values(), "1")
    folder = Path(os.environ.get(_FOLDER_VARIABLE) or _new_folder(base))
    wanted[LOG_VARIABLE] = str(folder / LOG_FOLDER)
    if any(os.environ.get(name) != value for name, value in wanted.items()):
        _start_again({**os.environ, **wanted, _FOLDER_VARIABLE: str(folder)})
    os.environ.pop(_FOLDER_VARIABLE, None)  # child processes are separate runs
    made = Recipe(folder)
    made.begin()
    LOG.info("every kernel is waited for; settings and outcome of this run: %s", folder / RUN_FILE)
    return made


def _new_folder(base: str) -> Path:
    folder = Path(base).resolve() / f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{os.getpid()}"
    (folder / LOG_FOLDER).mkdir(parents=True)
    return folder


def _command_line() -> list[str]:
    """The program's command line with the interpreter's own options, which Python 3.8 and 3.9 do not keep."""
    if sys.version_info >= (3, 10):
        return sys.orig_argv
    with open("/proc/self/cmdline", "rb") as file:
        return [os.fsdecode(word) for word in file.read().split(b"\0")[:-1]]


def _start_again(environment: dict[str, str]) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(sys.executable, [sys.executable, *_command_line()[1:]], environment)
