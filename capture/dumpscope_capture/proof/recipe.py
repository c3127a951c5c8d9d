"""A run whose failure can be trusted: kernels are waited for, one process, a folder with how it was made and how it ended.

DIR/20250131-120000-4711/recipe.json   command, environment, versions, how it ended
                         device_log/   what the device's runtime wrote
                         crash.txt     Python's stacks where the process died of a signal
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
from dumpscope_capture.device.environment import told
from dumpscope_format.recipe import BLOCKING, CRASH_FILE, LOG_FOLDER, LOG_VARIABLE, RUN_FILE

_FOLDER_VARIABLE: Final = "DUMPSCOPE_RECIPE_FOLDER"
"""The folder, for the process that takes this one's place."""

_KEPT: Final = ("devices", "environment", "host", "numerics", "pid", "seeds", "versions")


class RecipeError(ValueError):
    """The run cannot be made as the recipe says, and why."""


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

    def failed(self, error: BaseException) -> None:
        """Keep how the script ended. It still has to be raised."""
        if isinstance(error, SystemExit):
            self._outcome = {"status": f"exit {error.code or 0}"}
        else:
            self._outcome = {"status": "raised", "error": "".join(traceback.format_exception(error)).strip()}

    def _end(self) -> None:
        if self._outcome["status"] == "running":
            self._outcome = {"status": "exit 0"}
        self._write()
        faulthandler.disable()
        self._crash.close()
        if not os.path.getsize(self._crash.name):
            os.unlink(self._crash.name)

    def _write(self) -> None:
        """Devices are told again at the end: only what the program has used is known."""
        known = told(Config(), rank(), 0)
        document = {
            "schema": 1,
            "command": sys.orig_argv,
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
    """Make the folder of a run below `base` and begin it; does not return where the process must start again.

    A device's runtime may have read its environment when torch was imported, so a process that was started without the switches
    is replaced by one that has them. Raises RecipeError where this is one of several processes.
    """
    if rank() is not None:
        raise RecipeError("it is for one process, as others hide whose failure it is: one process, one device")
    wanted = dict.fromkeys(BLOCKING.values(), "1")
    folder = Path(os.environ.get(_FOLDER_VARIABLE) or _new_folder(base))
    wanted[LOG_VARIABLE] = str(folder / LOG_FOLDER)
    if any(os.environ.get(name) != value for name, value in wanted.items()):
        _start_again({**os.environ, **wanted, _FOLDER_VARIABLE: str(folder)})
    os.environ.pop(_FOLDER_VARIABLE, None)  # children are runs of their own
    made = Recipe(folder)
    made.begin()
    LOG.info("kernels are waited for; how this run was made and ended: %s", folder / RUN_FILE)
    return made


def _new_folder(base: str) -> Path:
    folder = Path(base).resolve() / f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{os.getpid()}"
    (folder / LOG_FOLDER).mkdir(parents=True)
    return folder


def _start_again(environment: dict[str, str]) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)
