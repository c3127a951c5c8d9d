"""Who else has a part in a call whose name is known: savers of calls, explainers of failures, interventions.

A recording, or the counting that stands in where none runs, tells them of every listed call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any, Final, Protocol

from dumpscope_capture.calls.call import Call


class Party(Protocol):
    """Watches calls. What it raises is an error of the capture and never reaches the program."""

    def begin(self, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any], frame: FrameType | None) -> None:
        """A call is about to run. args, kwargs: as the program wrote them; frame: of the caller."""

    def end(self, call: Call, result: Any) -> None:
        """A call has returned."""

    def failed(self, error: BaseException) -> None:
        """An exception of the program passes a function that torch offers to modes."""

    def report(self) -> dict[str, Any]:
        """What there is to say in run.json or a report, by key."""


class Runner(Protocol):
    """Runs some calls in its own way."""

    def wants(self, call: Call) -> Any:
        """What tells `run` how, None for a call that is none of its own."""

    def told(self) -> list[dict[str, Any]]:
        """What was done, for run.json."""

    def run(
        self, call: Call, wish: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any: ...


PARTIES: Final[list[Party]] = []
"""Of the process, whether or not a capture runs."""

RUNNERS: Final[list[Runner]] = []
"""Of the process; the last that wants a call has it."""


def told(having: Iterable[Party]) -> dict[str, Any]:
    """What parties, and all runners, have to say."""
    found = {key: value for party in having for key, value in party.report().items()}
    return {**found, "interventions": [one for runner in RUNNERS for one in runner.told()]} if RUNNERS else found


def run(call: Call, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a call as the last runner that wants it does, else as it is."""
    for runner in reversed(RUNNERS):
        wish = runner.wants(call)
        if wish is not None:
            return runner.run(call, wish, function, args, kwargs)
    return function(*args, **kwargs)
