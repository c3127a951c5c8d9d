"""What can go wrong, with ptdbg's codes, and how a capture ends a program on purpose.

CompareException(Exception)         code, and a text that says what is wrong and what to do
  DumpException                     of paths and files of a dump
  ParameterError(, ValueError)      code 11: an argument
CaptureEnd(SystemExit)              all that was asked for is recorded; nobody has to catch it
  StepsEnd                          the last step of `step=[...]` is over: exit status 0
  OverflowEnd                       `overflow_nums` overflows were found: exit status 3
"""

from __future__ import annotations

import enum
from typing import Final


class Code(enum.IntEnum):
    """Codes of CompareException; also what the old command line ended with."""

    NONE = 0
    INVALID_PATH = 1
    OPEN = 2
    CLOSE = 3
    READ = 4
    WRITE = 5
    INVALID_FILE = 6
    PERMISSION = 7
    INDEX = 8
    NO_DUMP_FILE = 9
    INVALID_DATA = 10
    INVALID_PARAM = 11
    DUMP_RATIO = 12
    INVALID_DUMP_FILE = 13
    UNKNOWN = 14
    DUMP_MODE = 15
    PARSE_FILE = 16
    COMPARE_MODE = 17
    OVERSIZE = 18
    SUMMARY_MODE = 19


OVERFLOW_STATUS: Final = 3


class CompareException(Exception):
    """An error with one of ptdbg's codes."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = int(code)


class DumpException(CompareException):
    """A path or file of a dump that cannot be used."""


class ParameterError(CompareException, ValueError):
    """An argument that is not allowed: its name, its value and what is allowed."""

    def __init__(self, name: str, value: object, allowed: str) -> None:
        super().__init__(Code.INVALID_PARAM, f"{name} is {value!r}; allowed: {allowed}")


class CaptureEnd(SystemExit):
    """Ends the program in good order. It is no error, so `except Exception` lets it pass and no traceback is printed."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(status)
        self.message = message

    def __str__(self) -> str:
        return self.message


class StepsEnd(CaptureEnd):
    """All steps asked for are recorded."""

    def __init__(self, message: str) -> None:
        super().__init__(message, 0)


class OverflowEnd(CaptureEnd):
    """As many overflows as asked for are recorded."""

    def __init__(self, message: str) -> None:
        super().__init__(message, OVERFLOW_STATUS)
