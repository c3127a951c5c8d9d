"""The error of the ptdbg interface and its codes, for capture and server."""

from __future__ import annotations

from enum import IntEnum


class Code(IntEnum):
    """Why a ptdbg function failed: `CompareException.code`, and the exit status of a script that ends with it."""

    NONE = 0
    INVALID_PATH = 1
    OPEN_FILE = 2
    CLOSE_FILE = 3
    READ_FILE = 4
    WRITE_FILE = 5
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
    OVER_SIZE = 18
    SUMMARY_MODE = 19


class CompareException(Exception):
    """An invalid argument or unusable input. code: one of `Code`; the text says what is wrong and what to do."""

    def __init__(self, code: int, message: str = "") -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return self.message or f"code {self.code}"
