"""Observers and runners of named calls: savers of calls, explainers of failures, interventions.

The recording notifies observers of every listed call; if no recording runs, the call counter does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any, Final, Protocol

from dumpscope_capture.calls.call import Call


class Observer(Protocol):
    """Watches calls. What it raises is an error of the capture and never reaches the program."""

    def begin(self, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any], frame: FrameType | None) -> None:
        """A call is about to run. args, kwargs: as the program wrote them; frame: of the caller."""

    def end(self, call: Call, result: Any) -> None:
        """A call has returned."""

    def note_exception(self, error: BaseException) -> None:
        """An exception of the program passes a function that torch offers to modes."""

    def report(self) -> dict[str, Any]:
        """Entries for run.json or a report, by key."""


class Runner(Protocol):
    """Runs some calls differently."""

    def wants(self, call: Call) -> Any:
        """Argument `wish` of `run`; None for a call that runs as usual."""

    def as_json(self) -> list[dict[str, Any]]:
        """What was done, as JSON for run.json."""

    def run(
        self, call: Call, wish: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any: ...


OBSERVERS: Final[list[Observer]] = []
"""Observers of the process, whether or not a capture runs."""

RUNNERS: Final[list[Runner]] = []
"""Runners of the process; if several want a call, the last one runs it."""


def reports(some: Iterable[Observer]) -> dict[str, Any]:
    """Reports of the given observers and of all runners, by key."""
    found = {key: value for observer in some for key, value in observer.report().items()}
    return {**found, "interventions": [one for runner in RUNNERS for one in runner.as_json()]} if RUNNERS else found


def run(call: Call, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a call by the last runner that wants it, else as usual."""
    for runner in reversed(RUNNERS):
        wish = runner.wants(call)
        if wish is not None:
            return runner.run(call, wish, function, args, kwargs)
    return function(*args, **kwargs)
