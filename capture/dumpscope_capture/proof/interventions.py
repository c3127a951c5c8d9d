"""Interventions: some calls of the program run in another way, everything else stays the same to the bit."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Final

import torch

from dumpscope_capture.calls import observers
from dumpscope_capture.calls.call import Call
from dumpscope_capture.context import LOG
from dumpscope_capture.older_torch import tree_leaves
from dumpscope_capture.proof.call_counter import CALL_COUNTER
from dumpscope_capture.proof.substitution import Refused, Unchanged, substitute
from dumpscope_format.interventions import Treatment, check, is_single, matches, treatment_text
from dumpscope_format.older_python import dataclass
from dumpscope_format.saved_call import bare

NAME_LIMIT: Final = 1000
"""Largest number of names in a tally."""


@dataclass(slots=True, kw_only=True)
class Tally:
    """Counts for the calls that match one pattern.

    substituted: calls that ran differently; unchanged: calls whose arguments already had the wanted form; refused: by reason
    seconds: of the substituted forward calls with conversions (asynchronous devices are not waited for)
    nbytes: of the tensors in their arguments; names: of the calls that ran differently, without repetition, up to `NAME_LIMIT`
    """

    pattern: str
    treatment: str
    substituted: int = 0
    unchanged: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    nbytes: int = 0
    names: dict[str, None] = field(default_factory=dict)

    @property
    def calls(self) -> int:
        return self.substituted + self.unchanged + sum(self.refused.values())

    def as_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return {"pattern": self.pattern, "treatment": self.treatment, "calls": self.calls, "substituted": self.substituted,
                "unchanged": self.unchanged, "refused": dict(self.refused), "seconds": round(self.seconds, 6),
                "bytes": self.nbytes, "names": list(self.names)}  # fmt: skip


class Interventions:
    """Patterns with their treatments, active between `begin` and `end`. Also a context manager."""

    def __init__(self, treatments: Mapping[str, Treatment | Callable[..., Any]]) -> None:
        plain = {pattern: one for pattern, one in treatments.items() if not callable(one)}
        check({**plain, **{pattern: "cpu" for pattern in treatments if pattern not in plain}})
        self._treatments = dict(treatments)
        self.tallies = {
            pattern: Tally(
                pattern=pattern,
                treatment=getattr(one, "__name__", "callable") if callable(one) else treatment_text(one),
            )
            for pattern, one in treatments.items()
        }
        self._found: dict[str, str | None] = {}
        self._patterns = list(treatments)
        self._single = {bare(pattern): at for at, pattern in enumerate(self._patterns) if is_single(pattern)}
        self._others = [(at, pattern) for at, pattern in enumerate(self._patterns) if not is_single(pattern)]

    def begin(self) -> None:
        observers.RUNNERS.append(self)
        CALL_COUNTER.retain()

    def end(self) -> None:
        if self in observers.RUNNERS:
            observers.RUNNERS.remove(self)
            CALL_COUNTER.release()

    def __enter__(self) -> Interventions:
        self.begin()
        return self

    def __exit__(self, *unused: object) -> None:
        self.end()

    # -- calls ---------------------------------------------------------------------------------------------------------

    def wants(self, call: Call) -> str | None:
        """The first pattern that matches a call."""
        name = call.name
        if name not in self._found:
            self._found[name] = self._first(name)
        return self._found[name]

    def _first(self, name: str) -> str | None:
        """Single names, of which a bisection has thousands, are looked up in a dict."""
        first = next((at for at, pattern in self._others if matches(pattern, name)), len(self._patterns))
        place = min(first, self._single.get(bare(name), first))
        return self._patterns[place] if place < len(self._patterns) else None

    def run(
        self, call: Call, pattern: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        tally = self.tallies[pattern]
        began = time.perf_counter()
        try:
            result = substitute(self._treatments[pattern], function, args, kwargs)
        except Unchanged:
            tally.unchanged += 1
            return function(*args, **kwargs)
        except Refused as refusal:
            reason = str(refusal)
            if reason not in tally.refused:
                LOG.warning("%s runs unchanged and not as %s: %s", bare(call.name), tally.treatment, reason)
            tally.refused[reason] = tally.refused.get(reason, 0) + 1
            return function(*args, **kwargs)
        tally.substituted += 1
        tally.seconds += time.perf_counter() - began
        tally.nbytes += sum(value.nbytes for value in tree_leaves((args, kwargs)) if isinstance(value, torch.Tensor))
        if len(tally.names) < NAME_LIMIT:
            tally.names[bare(call.name)] = None
        call.substituted = tally.treatment
        return result

    # -- reports -------------------------------------------------------------------------------------------------------

    def as_json(self) -> list[dict[str, Any]]:
        """One JSON object per pattern."""
        return [tally.as_json() for tally in self.tallies.values()]

    def report(self) -> str:
        """What was done, one line per pattern."""
        lines = []
        for tally in self.tallies.values():
            line = f"{tally.pattern} as {tally.treatment}: {tally.substituted} of {tally.calls} calls ran differently"
            if tally.substituted:
                line += f", {tally.seconds:.3f} s in them, {tally.nbytes / 1e6:.1f} MB of arguments"
            if tally.unchanged:
                line += f"; {tally.unchanged} were so already"
            for reason, number in tally.refused.items():
                line += f"; {number} refused: {reason}"
            lines.append(line if tally.calls else f"{tally.pattern} as {tally.treatment}: no call has this name")
        return "\n".join(lines)


def intervene(treatments: Mapping[str, Treatment | Callable[..., Any]]) -> Interventions:
    """Run the calls that match patterns differently, forward and backward.

        with intervene({"Functional.group_norm.*": "cpu"}) as done:
            train()
        print(done.report())

    treatments: words of `dumpscope_format.interventions` ("cpu", "float32", "float64", "contiguous", "roundtrip", "format", or
    some of them joined with +), `{"eps": 1e-3}` for other scalars, or a callable `(function, *args, **kwargs)`. Names and numbers
    of calls are those of a dump of the same program. Raises InterventionError.
    """
    return Interventions(treatments)
