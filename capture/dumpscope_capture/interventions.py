"""`intervene`, and the interventions that the environment asks for: DUMPSCOPE_INTERVENE and DUMPSCOPE_INTERVENE_REPORT."""

from __future__ import annotations

import atexit
import json
import os
from pathlib import Path

from dumpscope_capture.calls import observers
from dumpscope_capture.context import LOG, rank
from dumpscope_capture.proof.call_counter import CALL_COUNTER, CallNames
from dumpscope_capture.proof.interventions import Interventions, Tally, intervene
from dumpscope_format.interventions import REPORT_VARIABLE, VARIABLE, InterventionError, parse


def report_path(path: str) -> Path:
    """Where this process writes: `report.json`, `report.rank3.json` in a distributed job."""
    number = rank()
    given = Path(path)
    return given if number is None else given.with_name(f"{given.stem}.rank{number}{given.suffix}")


def write_report(path: str, interventions: Interventions | None) -> None:
    """Write what was done, and the names of all calls, as JSON. The file is complete or absent."""
    document = {
        "schema": 1,
        "rank": rank(),
        "pid": os.getpid(),
        "interventions": interventions.as_json() if interventions is not None else [],
        **{key: value for key, value in observers.reports(observers.OBSERVERS).items() if key != "interventions"},
    }
    target = report_path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    temporary.write_text(json.dumps(document, indent=1), encoding="utf-8")
    os.replace(temporary, target)


_from_environment: list[Interventions | None] = []


def activate() -> Interventions | None:
    """Begin the interventions of the environment, once per process and until its end. Raises InterventionError."""
    if _from_environment:
        return _from_environment[0]
    text = os.environ.get(VARIABLE)
    report = os.environ.get(REPORT_VARIABLE)
    made = Interventions(parse(text)) if text else None
    _from_environment.append(made)
    if report:
        observers.OBSERVERS.append(CallNames())
        CALL_COUNTER.retain()
        pid = os.getpid()
        atexit.register(lambda: write_report(report, made) if os.getpid() == pid else None)
    if made is not None:
        made.begin()
        LOG.info("%s: %s", VARIABLE, ", ".join(f"{one.pattern} as {one.treatment}" for one in made.tallies.values()))
    return made


__all__ = ["InterventionError", "Interventions", "Tally", "activate", "intervene", "write_report"]
