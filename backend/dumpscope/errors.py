"""The one error tree. Every error says what is wrong, where, and what to do about it.

    DumpscopeError              500
    ├── UsageError              400  an argument, option or request body is wrong
    ├── NotFoundError           404  no such dump, comparison, node, job
    ├── ConflictError           409  the thing exists but its state forbids the action
    ├── ForbiddenError          403  a path outside the allowed roots
    ├── UnreadableError         422  a file or folder is not a dump, or nothing of it can be read
    │   ├── ForeignError        422  it is something else: another archive, a text, a single tensor
    │   └── TensorError         422  one tensor file cannot be read (refused, truncated, over budget)
    ├── LimitError              413  a size, count or depth limit would be passed
    ├── FullDiskError           507  the disk, or the user's share of it, is full
    ├── BusyError               429  a client asks for more at a time than it may
    └── CancelledError          409  the user cancelled this work

A damaged *part* of a dump is never an exception: readers return `Problem`s and carry on.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass, field
from typing import Any, ClassVar

from dumpscope.texts import Phrase, Text, restore, said_of, say


class DumpscopeError(Exception):
    """Base: `detail` is one sentence for a person, `hint` says what to do next, `where` names file and place.

    Sentences made by `texts.say` can be told in the reader's language, by `str(error)` and by `body()` alike.
    """

    status: ClassVar[int] = 500
    code: ClassVar[str] = "internal"

    def __init__(self, detail: str, *, hint: str | None = None, where: str | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.hint = hint
        self.where = where

    def __str__(self) -> str:
        text = self._placed()
        return say("error.with_hint", what=text, hint=self.hint) if self.hint else text

    def body(self) -> dict[str, Any]:
        """The one form in which errors travel (docs/rest.md)."""
        return error_body(self.code, self._placed(), self.hint, self.status)

    def _placed(self) -> str:
        return say("error.at", where=self.where, what=self.detail) if self.where else self.detail


def error_body(code: str, detail: str, hint: str | None, status: int) -> dict[str, Any]:
    """An error as it travels: its English, and the phrases of both sentences where they have one."""
    return {
        "error": code,
        "detail": detail,
        "hint": hint,
        "status": status,
        "said": said_of(detail),
        "hint_said": said_of(hint),
    }


class UsageError(DumpscopeError):
    status = 400
    code = "usage"


class NotFoundError(DumpscopeError):
    status = 404
    code = "not_found"


class ConflictError(DumpscopeError):
    status = 409
    code = "conflict"


class ForbiddenError(DumpscopeError):
    status = 403
    code = "forbidden"


class UnreadableError(DumpscopeError):
    status = 422
    code = "unreadable"


class ForeignError(UnreadableError):
    """`kind`: what it is instead of a dump, a stable word (docs/dumps.md)."""

    code = "foreign"

    def __init__(self, detail: str, *, kind: str = "binary", hint: str | None = None, where: str | None = None) -> None:
        super().__init__(detail, hint=hint, where=where)
        self.kind = kind

    def body(self) -> dict[str, Any]:
        return {**super().body(), "kind": self.kind}


class TensorError(UnreadableError):
    """`kind` is the problem kind recorded for the file (see `Problem.kind`)."""

    code = "tensor"

    def __init__(
        self, detail: str, *, kind: str = "tensor_unreadable", hint: str | None = None, where: str | None = None
    ) -> None:
        super().__init__(detail, hint=hint, where=where)
        self.kind = kind


class LimitError(DumpscopeError):
    status = 413
    code = "limit"


class BusyError(DumpscopeError):
    status = 429
    code = "busy"


class FullDiskError(DumpscopeError):
    status = 507
    code = "full_disk"


def full_disk(error: BaseException) -> FullDiskError | None:
    """The error to tell if the operating system refused to write because there is no room, None for any other."""
    if not isinstance(error, OSError) or error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return None
    where = error.filename if isinstance(error.filename, str) else None
    return FullDiskError(say("error.full_disk"), hint=say("error.make_room"), where=where)


class CancelledError(DumpscopeError):
    status = 409
    code = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One damaged or doubtful part of an input that did not stop the work.

    loc: file and place ("step0/rank0/dump.json:byte 812045", or a file relative to the dump root)
    kind: short stable word (truncated, missing, unreadable, refused, duplicate_key, ...)
    message: what is wrong and what to do, one sentence each
    records: whole records that were read of a file that ends too early, None for other problems
    said: the phrase behind the message, None where it has none (older files); taken from the message unless given
    """

    loc: str
    kind: str
    message: str
    records: int | None = None
    said: Phrase | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if self.said is not None:
            object.__setattr__(self, "message", restore(self.message, [self.said]))
        elif isinstance(self.message, Text):
            object.__setattr__(self, "said", self.message.phrase)
