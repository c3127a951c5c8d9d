"""Errors with ptdbg's codes, and the exceptions by which a capture ends a program on purpose.

CompareException(Exception)         code, and a text that says what is wrong and what to do
  DumpException                     of paths and files of a dump
  ParameterError(, ValueError)      code 11: an argument
CaptureEnd(SystemExit)              everything requested is recorded; need not be caught
  StepsEnd                          the last step of `step=[...]` is over: exit status 0
  OverflowEnd                       `overflow_nums` overflows were found: exit status 3
"""

from __future__ import annotations

from typing import Final

from dumpscope_format.ptdbg import Code, CompareException

__all__ = ["CaptureEnd", "Code", "CompareException", "DumpException", "OverflowEnd", "ParameterError", "StepsEnd"]

OVERFLOW_STATUS: Final = 3


class DumpException(CompareException):
    """A path or file of a dump that cannot be used."""


class ParameterError(CompareException, ValueError):
    """An argument that is not allowed: its name, its value and what is allowed."""

    def __init__(self, name: str, value: object, allowed: str) -> None:
        super().__init__(Code.INVALID_PARAM, f"{name} is {value!r}; allowed: {allowed}")


class CaptureEnd(SystemExit):
    """Ends the program normally. It is no error: `except Exception` does not catch it, and no traceback is printed."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(status)
        self.message = message

    def __str__(self) -> str:
        return self.message


class StepsEnd(CaptureEnd):
    """All selected steps are recorded."""

    def __init__(self, message: str) -> None:
        super().__init__(message, 0)


class OverflowEnd(CaptureEnd):
    """The requested number of overflows is recorded."""

    def __init__(self, message: str) -> None:
        super().__init__(message, OVERFLOW_STATUS)
