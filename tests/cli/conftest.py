"""What the tests of the command line share."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def heard_signals() -> Iterator[None]:
    """Programs that a test starts hear SIGHUP and SIGINT, also where the tests themselves run under nohup or behind `&`: who
    ignores a signal hands that on."""
    before = [(signal.SIGHUP, signal.signal(signal.SIGHUP, signal.SIG_DFL))]
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        before.append((signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler)))
    yield
    for number, handler in before:
        signal.signal(number, handler)
