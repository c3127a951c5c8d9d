"""Run a user's command again and again with sets of calls run differently; every run is kept, so that a search goes on."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from dumpscope.errors import UnreadableError, UsageError
from dumpscope.reproduce.bisection import needed, patterns
from dumpscope.texts import say
from dumpscope_format.interventions import REPORT_VARIABLE, VARIABLE
from dumpscope_format.recipe import LOG_FOLDER, LOG_VARIABLE

RUNNER: Final = "dumpscope_capture.run"
NO_CALL: Final = "as it is"
_PYTHON: Final = re.compile(r"(python|pypy)[0-9.]*(\.exe)?", re.IGNORECASE)
_ALONE: Final = ("-W", "-X")
"""Options of Python that take the next word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """When a run is right: it ends with status 0 and, where asked for, its number or its dump is right.

    metric: regular expression, its first group is a number; the last match counts
    expect, tolerance: the number, and how far it may be off by its size; below, above: bounds it must keep
    dump, golden: the dump that the command writes, and the one to compare it with
    """

    metric: str | None = None
    expect: float | None = None
    tolerance: float = 1e-3
    below: float | None = None
    above: float | None = None
    dump: str | None = None
    golden: str | None = None

    def number_is_right(self, value: float) -> bool:
        if math.isnan(value):
            return False
        if self.expect is not None and abs(value - self.expect) > self.tolerance * max(abs(self.expect), 1e-12):
            return False
        return (self.below is None or value < self.below) and (self.above is None or value > self.above)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One run. count: of calls that were to run differently; patterns: which; value: the metric's text"""

    patterns: dict[str, str]
    count: int
    right: bool
    status: int
    value: str
    seconds: float


OnRun = Callable[[int, Trial], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """needed: the smallest set; None where nothing repairs, empty where the program is right as it is; total: of its calls"""

    needed: list[str] | None
    total: int
    trials: list[Trial]


class Bisection:
    """A search in a folder: `bisect.json` holds the runs, `runs/007` what the seventh was told and what it said.

    There lie `intervene.json`, `report.json`, `output.txt` and, on an Ascend device, its log."""

    def __init__(
        self,
        command: Sequence[str],
        wanted: Wanted,
        folder: Path,
        *,
        treatment: str,
        resume: bool,
        seconds: float,
        on_run: OnRun,
    ) -> None:
        self.command = through_runner(command)
        self.wanted = wanted
        self.folder = folder
        self.treatment = treatment
        self.seconds = seconds
        self.on_run = on_run
        self.trials: list[Trial] = []
        self.calls: list[str] = []
        folder.mkdir(parents=True, exist_ok=True)
        self._state = folder / "bisect.json"
        self._known: dict[str, Trial] = {}
        self._load(resume)

    def run(self) -> Found:
        """Raises UnreadableError where the command tells no calls or no number."""
        if self._try([]):
            return Found(needed=[], total=len(self.calls), trials=self.trials)
        if not self.calls:
            hint = say("pipeline.python_needs_dumpscope_capture_start_python_m", runner=RUNNER)
            if self.trials[-1].status:
                output = self.folder / "runs" / "000" / "output.txt"
                told = say("pipeline.command_failed", status=self.trials[-1].status)
                raise UnreadableError(told, hint=say("pipeline.output_says_why", output=output, hint=hint))
            raise UnreadableError(say("pipeline.command_ran_but_told_no_calls"), hint=hint)
        found = needed(self.calls, self._try)
        return Found(needed=found, total=len(self.calls), trials=self.trials)

    def _try(self, calls: Sequence[str]) -> bool:
        wishes = patterns(calls, self.treatment)
        key = json.dumps(wishes, sort_keys=True)
        trial = self._known.get(key)
        if trial is None:
            trial = self._run(wishes, len(calls))
            self._known[key] = trial
        if trial not in self.trials:
            self.trials.append(trial)
            self._save()
            self.on_run(len(self.trials), trial)
        return trial.right

    def _run(self, wishes: dict[str, str], count: int) -> Trial:
        folder_of_run = self.folder.resolve() / "runs" / f"{len(self.trials):03}"
        if folder_of_run.exists():
            shutil.rmtree(folder_of_run)
        folder_of_run.mkdir(parents=True)
        intervene, report = folder_of_run / "intervene.json", folder_of_run / "report.json"
        intervene.write_text(json.dumps(wishes), encoding="utf-8")
        environment = {**os.environ, REPORT_VARIABLE: str(report), LOG_VARIABLE: str(folder_of_run / LOG_FOLDER)}
        environment.pop(VARIABLE, None)
        if wishes:
            environment[VARIABLE] = str(intervene)
        began = time.monotonic()
        try:
            with open(folder_of_run / "output.txt", "wb") as stream:
                done = subprocess.run(
                    self.command, env=environment, stdout=stream, stderr=stream, check=False, timeout=self.seconds
                )
            status = done.returncode
        except subprocess.TimeoutExpired:
            status = 124
        except OSError as error:
            raise UnreadableError(
                say("pipeline.cannot_started", reason=error.strerror), where=self.command[0]
            ) from error
        said = (folder_of_run / "output.txt").read_text(encoding="utf-8", errors="replace")
        if not count:
            self.calls = _calls(report)
            if f"No module named {RUNNER.partition('.')[0]}" in said:
                raise UnreadableError(
                    say("pipeline.python_has_no_dumpscope_capture"),
                    where=self.command[0],
                    hint=say("pipeline.install_there"),
                )
        right, value = self._right(status, said, folder_of_run / "output.txt")
        return Trial(
            patterns=wishes, count=count, right=right, status=status, value=value, seconds=time.monotonic() - began
        )

    def _right(self, status: int, said: str, output: Path) -> tuple[bool, str]:
        wanted = self.wanted
        value = ""
        if wanted.metric is not None:
            matches = list(re.finditer(wanted.metric, said))
            value = (matches[-1][1] if matches[-1].re.groups else matches[-1][0]) if matches else ""
            if not value and status == 0:
                raise UnreadableError(
                    say("pipeline.commands_output_holds_nothing_like", metric=f"{wanted.metric!r}"),
                    hint=say("pipeline.see", output=output),
                )
        if status != 0:
            return False, value or f"status {status}"
        if wanted.metric is not None:
            try:
                return wanted.number_is_right(float(value)), value
            except ValueError as error:
                raise UsageError(say("pipeline.metric_caught_which_no_number", value=f"{value[:60]!r}")) from error
        if wanted.golden is not None and wanted.dump is not None:
            compare = [sys.executable, "-m", "dumpscope", "compare", wanted.dump, wanted.golden, "--fail-on", "no"]
            done = subprocess.run(compare, capture_output=True, text=True, check=False)
            if done.returncode == 2:
                raise UnreadableError(done.stderr.strip()[-300:])
            first = (done.stdout.strip().splitlines() or [""])[0]
            return done.returncode == 0, first[:60]
        return True, "status 0"

    # -- the state file ------------------------------------------------------------------------------------------------

    def _load(self, resume: bool) -> None:
        if not self._state.exists():
            return
        if not resume:
            raise UsageError(
                say("pipeline.holds_earlier_search", state=self._state), hint=say("pipeline.resume_goes_give_another_o")
            )
        held = json.loads(self._state.read_text(encoding="utf-8"))
        if (
            held["command"] != list(self.command)
            or held["wanted"] != asdict(self.wanted)
            or held["treatment"] != self.treatment
        ):
            raise UsageError(
                say("pipeline.another_command_question", state=self._state), hint=say("pipeline.give_another_o")
            )
        self.calls = held["calls"]
        for one in held["trials"]:
            trial = Trial(**one)
            self._known[json.dumps(trial.patterns, sort_keys=True)] = trial

    def _save(self) -> None:
        held: dict[str, Any] = {
            "schema": 1,
            "command": list(self.command),
            "wanted": asdict(self.wanted),
            "treatment": self.treatment,
            "calls": self.calls,
            "trials": [asdict(one) for one in self.trials],
        }
        fresh = self._state.with_suffix(".tmp")
        fresh.write_text(json.dumps(held, indent=1), encoding="utf-8")
        os.replace(fresh, self._state)


def through_runner(command: Sequence[str]) -> list[str]:
    """`python train.py` as `python -m dumpscope_capture.run train.py`; anything that is not Python stays as it is."""
    if not command:
        raise UsageError(say("pipeline.which_command"), hint=say("pipeline.dumpscope_bisect_metric_loss_0_9"))
    if not _PYTHON.fullmatch(os.path.basename(command[0])) or RUNNER in command:
        return list(command)
    at = 1
    while at < len(command) and command[at].startswith("-") and command[at] not in ("-m", "-c"):
        at += 2 if command[at] in _ALONE else 1
    if at < len(command) and command[at] == "-c":
        raise UsageError(say("pipeline.python_c_cannot_watched"), hint=say("pipeline.put_code_into_file"))
    return [*command[:at], "-m", RUNNER, *command[at:]]


def _calls(report: Path) -> list[str]:
    """Names of the calls of a run in the order in which they were first made."""
    try:
        on_run = json.loads(report.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    names = on_run.get("calls")
    return list(names) if isinstance(names, dict) else []
