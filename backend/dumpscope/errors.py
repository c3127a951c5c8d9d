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
    └── CancelledError          409  the user cancelled this work

A damaged *part* of a dump is never an exception: readers return `Problem`s and carry on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


class DumpscopeError(Exception):
    """Base: `detail` is one sentence for a person, `hint` says what to do next, `where` names file and place."""

    status: ClassVar[int] = 500
    code: ClassVar[str] = "internal"

    def __init__(self, detail: str, *, hint: str | None = None, where: str | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.hint = hint
        self.where = where

    def __str__(self) -> str:
        text = f"{self.where}: {self.detail}" if self.where else self.detail
        return f"{text} ({self.hint})" if self.hint else text

    def body(self) -> dict[str, str | int | None]:
        """The one form in which errors travel (docs/rest.md)."""
        detail = f"{self.where}: {self.detail}" if self.where else self.detail
        return {"error": self.code, "detail": detail, "hint": self.hint, "status": self.status}


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

    def body(self) -> dict[str, str | int | None]:
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
    """

    loc: str
    kind: str
    message: str
    records: int | None = None
