"""Finds the call for `reproduce` and `handover`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dumpscope.cli.opening import open_layout
from dumpscope.errors import UsageError
from dumpscope.pipeline.operators.reproduce import FoundCall, find_call, find_saved, is_saved
from dumpscope.texts import say


@contextmanager
def open_call(path: Path, node: str | None, step: int | None, rank: int | None) -> Iterator[FoundCall]:
    """The call `node` in the dump at `path`, or the saved call at `path`."""
    if is_saved(path):
        yield find_saved(str(path))
        return
    with open_layout(path) as layout:
        if node is None:
            raise UsageError(say("cli.name_call"), hint=say("cli.call_as_in_dump"))
        yield find_call(layout, node, step=step, rank=rank)


def describe_source(path: Path, found: FoundCall) -> str:
    """Dump, step and rank of a call, in one line."""
    rank = "" if found.ref.rank is None else f", rank {found.ref.rank}"
    return f"{path.resolve().name}, step {found.ref.step}{rank}"
