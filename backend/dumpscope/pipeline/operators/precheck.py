"""Every call of a dump alone, in processes of a Python that has torch; resumable, one row a call whatever happens to it."""

from __future__ import annotations

import csv
import importlib.util
import json
import os
import selectors
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final

from dumpscope.domain.records import RankRef
from dumpscope.errors import CancelledError, UnreadableError, UsageError
from dumpscope.pipeline.operators.precheck_config import require_known
from dumpscope.pipeline.operators.reproduce import calls_of, tensor_folder
from dumpscope.readers.msprobe.raw_records import read_bodies
from dumpscope.reproduce.tables import (
    DETAIL_COLUMNS,
    OUR_DETAIL_COLUMNS,
    OUR_RESULT_COLUMNS,
    RESULT_COLUMNS,
    Row,
    detail_rows,
    result_row,
)
from dumpscope.texts import say
from dumpscope_format.naming import parse
from dumpscope_format.replay import NO_DEVICE

FOLDER: Final = "precheck"
"""Folder for results unless another one is given."""
STATE: Final = "precheck.jsonl"
RESULTS: Final = "accuracy_checking_result.csv"
DETAILS: Final = "accuracy_checking_details.csv"
ERROR_DATA: Final = "ut_error_data"
CALL_SECONDS: Final = 600.0
_START: Final = (
    "import sys; sys.path += sys.argv.pop(1).split('|'); from dumpscope_capture.precheck import main; sys.exit(main())"
)

Answer = dict[str, Any]
LOOK_SECONDS: Final = 0.3
"""Between two looks whether to go on."""

Cancelled = Callable[[], bool]
OnCall = Callable[[int, int, str], None]
"""Called with calls done, calls in all and the last one's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """How calls are run.

    python: one that has torch; save: folder for the tensors of calls that are wrong; only: these APIs, all where empty; but: not
    these
    """

    python: str
    device: str = "cpu"
    jobs: int = 1
    seed: int = 1234
    save: Path | None = None
    prelude: str | None = None
    call_seconds: float = CALL_SECONDS
    only: Sequence[str] = field(default_factory=tuple)
    but: Sequence[str] = field(default_factory=tuple)


def precheck(
    refs: Sequence[RankRef],
    output: Path,
    workers: Workers,
    *,
    resume: bool,
    path: str = "",
    on_call: OnCall = lambda *_: None,
    cancelled: Cancelled = lambda: False,
) -> list[Answer]:
    """Check every call of these ranks and write the tables into `output`. Answers in the order of the dump.

    path: of the dump, for whoever finds the folder later
    Raises UsageError where `output` holds an earlier run and `resume` is not asked for, UnreadableError where no worker starts,
    CancelledError, which leaves what was done for `resume`.
    """
    output.mkdir(parents=True, exist_ok=True)
    state = output / STATE
    if state.exists() and not resume:
        raise UsageError(
            say("pipeline.holds_earlier_pre_check", output=output), hint=say("pipeline.resume_goes_give_another_o")
        )
    known = _known(state, workers.device)
    tasks, order = [], []
    answers: dict[tuple[int, int, str], Answer] = {}
    for ref in refs:
        rank = ref.number
        for name, call in calls_of(ref):
            key = (ref.step, rank, name)
            order.append(key)
            place = {"step": ref.step, "rank": rank, "name": name}
            skipped = _left_out(name, workers)
            if isinstance(call, UsageError):
                answers[key] = {**place, "refused": call.detail}
            elif skipped:
                answers[key] = {**place, "refused": skipped}
            elif key in known:
                answers[key] = known[key]
            else:
                tasks.append((place, json.dumps({"call": call, "folder": tensor_folder(ref)})))
    require_known((*workers.only, *workers.but), frozenset(name.split(".")[-2] for _, _, name in order))
    with open(state, "a", encoding="utf-8") as log:
        if not known:
            log.write(json.dumps({"device": workers.device, "path": path}) + "\n")
        number = 0
        try:
            for number, found in enumerate(_run(tasks, workers, cancelled), 1):
                answers[found["step"], found["rank"], found["name"]] = found
                log.write(json.dumps(found) + "\n")
                log.flush()
                on_call(number, len(tasks), found["name"])
        except UnreadableError:
            if not known and not number:
                state.unlink()  # nothing ran: the next try, with what was told as the remedy, begins anew
            raise
    listed = [answers[key] for key in dict.fromkeys(order) if key in answers]
    write_tables(listed, output)
    return listed


def nothing_to_run(refs: Sequence[RankRef]) -> str:
    """Why these ranks hold no function call, and what to do."""
    found = [parse(node) for ref in refs for node in read_bodies(ref)]
    kinds = {name.kind for name in found}
    if not found:
        return say("pipeline.holds_no_values_task_structure_run")
    if "api" in kinds:
        return say("pipeline.holds_backward_calls_only_their_arguments")
    if kinds == {"debug"}:
        return say("pipeline.holds_saved_variables_not_calls_capture")
    return say("pipeline.holds_modules_only_level_l0_no")


def write_tables(answers: Sequence[Answer], output: Path) -> None:
    write_table(output / RESULTS, (*RESULT_COLUMNS, *OUR_RESULT_COLUMNS), [result_row(one) for one in answers])
    rows = [row for one in answers for row in detail_rows(one)]
    write_table(output / DETAILS, (*DETAIL_COLUMNS, *OUR_DETAIL_COLUMNS), rows)


def write_table(path: Path, columns: Sequence[str], rows: Sequence[Row]) -> None:
    """A csv as msprobe encodes it."""
    with open(path, "w", encoding="utf-8-sig", newline="") as stream:
        table = csv.DictWriter(stream, columns)
        table.writeheader()
        table.writerows(rows)


def _known(state: Path, device: str) -> dict[tuple[int, int, str], Answer]:
    """Answers of an earlier run; a torn last line is left out."""
    found: dict[tuple[int, int, str], Answer] = {}
    if not state.exists():
        return found
    for line in state.read_text(encoding="utf-8").splitlines():
        try:
            one = json.loads(line)
        except ValueError:
            continue
        if "name" in one:
            found[one["step"], one["rank"], one["name"]] = one
        elif one.get("device") != device:
            raise UsageError(
                say("pipeline.earlier_pre_check_ran_not", get=one.get("device"), device=device),
                hint=say("pipeline.give_another_o"),
            )
    return found


def _left_out(name: str, workers: Workers) -> str:
    api = name.split(".")[-2]
    if api in workers.but:
        return say("pipeline.black_list")
    return say("pipeline.not_white_list") if workers.only and api not in workers.only else ""


def _run(tasks: Sequence[tuple[Mapping[str, Any], str]], workers: Workers, cancelled: Cancelled) -> Iterator[Answer]:
    """Answers as they come; threads hand the tasks to processes."""
    waiting: SimpleQueue[tuple[Mapping[str, Any], str]] = SimpleQueue()
    for task in tasks:
        waiting.put(task)
    done: SimpleQueue[Answer | BaseException] = SimpleQueue()
    stop = threading.Event()
    running: list[_Worker] = []

    def work() -> None:
        try:
            with _Worker(workers, stop) as worker:
                running.append(worker)
                while not stop.is_set():
                    try:
                        place, line = waiting.get_nowait()
                    except Empty:
                        return
                    done.put({**place, **worker.ask(line), "name": place["name"]})
        except BaseException as error:
            done.put(error)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(max(1, min(workers.jobs, len(tasks))))]
    for thread in threads:
        thread.start()
    try:
        left = len(tasks)
        while left:
            if cancelled():
                raise CancelledError(say("pipeline.cancelled"))
            try:
                found = done.get(timeout=LOOK_SECONDS)
            except Empty:
                continue
            if isinstance(found, BaseException):
                raise found
            yield found
            left -= 1
    finally:
        stop.set()
        for worker in list(running):
            worker.kill()
        for thread in threads:
            thread.join()


class _Worker:
    """One process, started again after each call that it does not survive."""

    def __init__(self, workers: Workers, stop: threading.Event) -> None:
        self._workers = workers
        self._stop = stop
        self._command = [workers.python, "-c", _START, "|".join(_package_folders())]
        self._command += ["--device", workers.device, "--seed", str(workers.seed)]
        self._command += ["--save", str(workers.save)] if workers.save else []
        self._command += ["--prelude", workers.prelude] if workers.prelude else []
        self._process: subprocess.Popen[str] | None = None
        self._answered = False

    def __enter__(self) -> _Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def kill(self) -> None:
        """From another thread: the present call is given up."""
        process = self._process
        if process is not None:
            process.kill()

    def ask(self, line: str) -> Answer:
        process = self._process or self._start()
        if self._stop.is_set():  # told to stop while it started
            process.kill()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(line + "\n")
            process.stdin.flush()
        except OSError:
            return self._lost()
        with selectors.DefaultSelector() as waiting:  # select() knows no file numbers past 1023
            waiting.register(process.stdout, selectors.EVENT_READ)
            ready = waiting.select(self._workers.call_seconds)
        if not ready:
            process.kill()
            self._end()
            return {"crash": say("pipeline.no_answer_after_s", call_seconds=f"{self._workers.call_seconds:g}")}
        answer = process.stdout.readline()
        if not answer:
            return self._lost()
        self._answered = True
        found: Answer = json.loads(answer)
        return found

    def _start(self) -> subprocess.Popen[str]:
        try:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
        except OSError as error:
            raise UnreadableError(
                say("pipeline.cannot_started", reason=error.strerror), where=self._workers.python
            ) from error
        self._said: list[str] = []
        threading.Thread(target=self._listen, args=(self._process,), daemon=True).start()
        return self._process

    def _listen(self, process: subprocess.Popen[str]) -> None:
        """Keep the last lines of what it complains about, so that it never waits for a reader."""
        assert process.stderr is not None
        for text in process.stderr:
            self._said = [*self._said[-20:], text.rstrip()]

    def _lost(self) -> Answer:
        process = self._process
        assert process is not None
        status = process.wait()
        last = next((one for one in reversed(self._said) if one), "")
        self._process = None
        if status > 0 and not self._answered and ("ModuleNotFoundError" in last or "ImportError" in last):
            raise UnreadableError(last, where=self._workers.python, hint=say("pipeline.python_names_python_has_torch"))
        if status == NO_DEVICE and not self._answered:
            device = self._workers.device
            told = say("pipeline.no_such_device", device=device, why=last)
            raise UnreadableError(told, where=self._workers.python, hint=say("pipeline.name_device_that_is_there"))
        how = say("pipeline.signal", value=-status) if status < 0 else say("pipeline.exit_status", status=status)
        return {"crash": say("pipeline.process_ended", how=how, part=f": {last[:200]}" if last else "")}

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None and not process.stdin.closed:
            process.stdin.close()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _package_folders() -> list[str]:
    """Where dumpscope_capture and dumpscope_format lie, so that any Python finds them."""
    found = []
    for name in ("dumpscope_capture", "dumpscope_format"):
        place = importlib.util.find_spec(name)
        folders = list(place.submodule_search_locations or ()) if place else []
        found += [os.path.dirname(folder) for folder in folders]
    return list(dict.fromkeys(found))
