"""`prove`: runs the program with an operator substituted and with every control, and judges whether the operator is wrong.

The list of runs and the rules are in `dumpscope_format.proof_runs`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from dumpscope_capture.calls import observers
from dumpscope_capture.proof.call_counter import CALL_COUNTER, CallNames
from dumpscope_capture.proof.interventions import Interventions
from dumpscope_format.interventions import Treatment, matches
from dumpscope_format.older_python import dataclass
from dumpscope_format.proof_runs import Judgement, Outcome, Trial, controls, judge

NEIGHBOURS: Final = 6
"""Largest number of neighbours that are tried until one can be substituted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """Outcomes of all runs in order, and what they prove."""

    outcomes: tuple[Outcome, ...]
    judgement: Judgement

    def __str__(self) -> str:
        lines = [f"{self.judgement.word}: {self.judgement.reason}"]
        for one in self.outcomes:
            word = {True: "healed", False: "fault stays", None: "not judged"}[one.healed]
            metric = "" if one.metric is None else f", {one.metric:.6g}"
            note = f" ({one.note})" if one.note else ""
            lines.append(f"  {one.trial.kind:<10} {word}{metric}, {one.touched} calls: {one.trial.about}{note}")
        return "\n".join(lines)


def prove(
    pattern: str, run: Callable[[], float], healed: Callable[[float], bool], *, neighbours: Sequence[str] | None = None,
    scalars: Mapping[str, Any] | None = None, treatment: Treatment = "cpu",
) -> Proof:  # fmt: skip
    """Run a program with the calls of `pattern` substituted and with every control, and judge.

    run: does the same work from the same state each time and returns what is measured; if it raises, the fault is still there
    healed: whether a measurement is free of the fault
    neighbours: names of calls for the control "neighbour", nearest first; None takes the nearest calls of other operators
    """
    names = CallNames()
    observers.OBSERVERS.append(names)
    CALL_COUNTER.retain()
    try:
        outcomes = [_run_trial(controls(pattern)[0], run, healed)]
    finally:
        observers.OBSERVERS.remove(names)
        CALL_COUNTER.release()
    for trial in controls(pattern, scalars=scalars, treatment=treatment)[1:]:
        outcomes.append(_run_trial(trial, run, healed))
    near = nearest(pattern, list(names.met)) if neighbours is None else list(neighbours)
    for name in near[:NEIGHBOURS]:
        beside = controls(pattern, neighbours=[name], treatment=treatment)[-1]
        outcomes.append(_run_trial(beside, run, healed))
        if outcomes[-1].touched:
            break
    return Proof(outcomes=tuple(outcomes), judgement=judge(outcomes))


def nearest(pattern: str, names: Sequence[str]) -> list[str]:
    """Calls of other operators around the first call that matches a pattern, nearest first; at equal distance the later call."""
    wanted = [place for place, name in enumerate(names) if matches(pattern, name)]
    if not wanted:
        return []
    labels = {names[place].rpartition(".")[0] for place in wanted}
    others = [place for place, name in enumerate(names) if name.rpartition(".")[0] not in labels]
    return [names[place] for place in sorted(others, key=lambda place: (abs(place - wanted[0]), place < wanted[0]))]


def _run_trial(trial: Trial, run: Callable[[], float], healed: Callable[[float], bool]) -> Outcome:
    with Interventions(trial.interventions) as done:
        note = ""
        metric = None
        try:
            metric = float(run())
            fine = bool(healed(metric))
        except RuntimeError as error:
            fine = False
            note = str(error).strip().partition("\n")[0][:200]
    tallies = list(done.tallies.values())
    refused = [reason for tally in tallies for reason in tally.refused]
    if refused and not note:
        note = f"refused: {refused[0]}"
    touched = sum(tally.substituted for tally in tallies)
    already = 0 if refused else sum(tally.unchanged for tally in tallies)
    if already and not touched:
        note = "; ".join(["all were so already", *([note] if note else [])])
    return Outcome(trial=trial, healed=fine, touched=touched, already=already, metric=metric, note=note)
