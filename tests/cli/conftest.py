"""What the tests of the command line share."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def heard_hangup() -> Iterator[None]:
    """Programs that a test starts hear SIGHUP, also where the tests themselves run under nohup: who ignores it hands that on."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)
