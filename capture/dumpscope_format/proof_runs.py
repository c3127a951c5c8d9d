"""Proof by substitution: the runs that are needed to prove an operator wrong, and what their outcomes prove.

Besides replacing a kernel, substitution moves data, changes its layout and waits for the device. Each of these may heal a run. So
an operator is called wrong only if substitution helps and no control does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, Final, Literal

from dumpscope_format.interventions import Treatment
from dumpscope_format.older_python import dataclass

Kind = Literal["baseline", "substitute", "neighbour", "roundtrip", "contiguous", "format", "scalar"]

REQUIRED: Final[tuple[Kind, ...]] = ("baseline", "substitute", "neighbour", "roundtrip", "contiguous")
"""Runs that are needed for a proof; `format` and `scalar` count if they can be run."""

_MEANING: Final[dict[str, str]] = {
    "neighbour": "substituting a neighbouring operator helps as well",
    "roundtrip": "copying its inputs and outputs to the host and back helps as well",
    "contiguous": "making its inputs contiguous helps as well",
    "format": "changing the storage format of its inputs helps as well",
    "scalar": "changing one of its scalars helps as well",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One run to make. interventions: what it substitutes, as in DUMPSCOPE_INTERVENE; empty for the baseline."""

    kind: Kind
    interventions: Mapping[str, Treatment]
    about: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Result of a trial. healed: whether the fault was gone; None if the run could not be judged.

    touched: number of calls that ran differently; already: of calls that had the wanted form before; metric: measured value
    note: why a run could not be judged or was not made
    """

    trial: Trial
    healed: bool | None
    touched: int = 0
    already: int = 0
    metric: float | None = None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What a set of outcomes proves.

    word: "confirmed" the operator is wrong; "refuted" substitution does not help; "confounded" a control helps as well;
        "not reproduced" the baseline shows no fault; "unproven" runs are missing
    """

    word: Literal["confirmed", "refuted", "confounded", "not reproduced", "unproven"]
    reason: str
    helped: tuple[Kind, ...] = field(default=())

    @property
    def blamed(self) -> bool:
        return self.word == "confirmed"


def controls(
    pattern: str, *, neighbours: Sequence[str] = (), scalars: Mapping[str, Any] | None = None, treatment: Treatment = "cpu",
) -> list[Trial]:  # fmt: skip
    """The runs that prove or refute that the calls of `pattern` are wrong, the cheapest answer first.

    neighbours: names of other calls, nearest first; the first is substituted as a control
    scalars: arguments with values that matter little, {"eps": 2e-5}; each gives a control
    """
    made = [
        Trial(kind="baseline", interventions={}, about="nothing is changed"),
        Trial(kind="substitute", interventions={pattern: treatment}, about=f"{pattern} runs differently"),
        Trial(kind="roundtrip", interventions={pattern: "roundtrip"}, about="its data go to the host and back"),
        Trial(kind="contiguous", interventions={pattern: "contiguous"}, about="its inputs are contiguous"),
        Trial(kind="format", interventions={pattern: "format"}, about="its inputs are in plain format"),
    ]  # fmt: skip
    made += [
        Trial(kind="scalar", interventions={pattern: {name: value}}, about=f"{name} is {value!r}")
        for name, value in (scalars or {}).items()
    ]
    if neighbours:
        made.append(
            Trial(kind="neighbour", interventions={neighbours[0]: treatment}, about=f"{neighbours[0]} runs differently")
        )
    return made


def judge(outcomes: Iterable[Outcome]) -> Judgement:
    """What outcomes prove. A trial that touched no call counts as not made.

    Exception: if all inputs were contiguous before, the layout explains nothing, so the contiguous control counts as made."""
    found = [one for one in outcomes if one.healed is not None and _counts(one)]
    kinds = {one.trial.kind for one in found}
    helped: tuple[Kind, ...] = tuple(dict.fromkeys(one.trial.kind for one in found if one.healed))
    if "baseline" in helped:
        return Judgement(word="not reproduced", reason="the run without any change shows no fault", helped=helped)
    if "substitute" in kinds and "substitute" not in helped:
        return Judgement(word="refuted", reason="the fault stays though the operator runs differently", helped=helped)
    others = [kind for kind in helped if kind != "substitute"]
    if others:
        reason = "; ".join(_MEANING[kind] for kind in others)
        return Judgement(word="confounded", reason=f"{reason}: the operator itself is not proven wrong", helped=helped)
    missing = [kind for kind in REQUIRED if kind not in kinds]
    if missing:
        return Judgement(word="unproven", reason=f"not run, or touched no call: {', '.join(missing)}", helped=helped)
    return Judgement(
        word="confirmed", reason="the fault goes with the operator, and with none of the controls", helped=helped
    )


def _counts(outcome: Outcome) -> bool:
    kind = outcome.trial.kind
    return bool(outcome.touched) or kind == "baseline" or (kind == "contiguous" and outcome.already > 0)
