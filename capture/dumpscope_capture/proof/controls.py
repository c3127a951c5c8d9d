"""Proof that an operator is to blame: the program run with it substituted, and with every control.

The runs and the rules lie in `dumpscope_format.proof_runs`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dumpscope_capture.calls import observers
from dumpscope_capture.interventions import Interventions
from dumpscope_capture.proof.counting import COUNTING, Names
from dumpscope_format.interventions import Treatment, matches
from dumpscope_format.proof_runs import Judgement, Outcome, Trial, controls, judge

NEIGHBOURS: Final = 6
"""Neighbours tried at most, until one really runs differently."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """Outcomes of all trials, in the order they were made, and what they prove."""

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

    run: does the same work each time, from the same state, and gives what is measured; an exception is a fault that stays
    healed: whether a measurement is free of the fault
    neighbours: names of calls for the control beside the operator, nearest first; None looks for the nearest calls of others
    """
    names = Names()
    observers.PARTIES.append(names)
    COUNTING.retain()
    try:
        outcomes = [_tried(controls(pattern)[0], run, healed)]
    finally:
        observers.PARTIES.remove(names)
        COUNTING.release()
    for trial in controls(pattern, scalars=scalars, treatment=treatment)[1:]:
        outcomes.append(_tried(trial, run, healed))
    near = nearest(pattern, list(names.met)) if neighbours is None else list(neighbours)
    for name in near[:NEIGHBOURS]:
        beside = controls(pattern, neighbours=[name], treatment=treatment)[-1]
        outcomes.append(_tried(beside, run, healed))
        if outcomes[-1].touched:
            break
    return Proof(outcomes=tuple(outcomes), judgement=judge(outcomes))


def nearest(pattern: str, names: Sequence[str]) -> list[str]:
    """Calls of other operators around the first that a pattern means, nearest first, the one behind before the one in front."""
    wanted = [place for place, name in enumerate(names) if matches(pattern, name)]
    if not wanted:
        return []
    labels = {names[place].rpartition(".")[0] for place in wanted}
    others = [place for place, name in enumerate(names) if name.rpartition(".")[0] not in labels]
    return [names[place] for place in sorted(others, key=lambda place: (abs(place - wanted[0]), place < wanted[0]))]


def _tried(trial: Trial, run: Callable[[], float], healed: Callable[[float], bool]) -> Outcome:
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
