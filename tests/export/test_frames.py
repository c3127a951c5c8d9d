"""Frames of a dump are somebody else's text: they may hold anything and are read in no time."""

from __future__ import annotations

import pytest

from dumpscope.export.stack_frames import parse_frame


@pytest.mark.parametrize(
    "text",
    [
        'File "a, line 1, in ' * 5000,
        'File "a' + ", line 1, in x " * 20000,
        'File "a", line 1, in ' + " " * 30000 + "x",
        'File "a", line 1, in f\n' + " x" * 20000 + " " * 20000 + "\n",
        " " * 100_000,
    ],
)
def test_a_monstrous_frame_is_given_up_soon(text: str) -> None:
    """Unbounded, each of these would outlast the suite's timeout or come near it."""
    parse_frame(text)


def test_a_line_number_too_long_for_any_file_is_no_frame() -> None:
    assert parse_frame('File "a", line ' + "9" * 5000 + ", in f") is None
    assert parse_frame('File "a", line 12, in f,\n x = 1') is not None
