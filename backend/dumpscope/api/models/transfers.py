"""Models of uploads in pieces (docs/rest.md)."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from dumpscope.api.models.base import Problem, Wire

Count = Annotated[int, Field(ge=0, lt=2**53)]


class NewUpload(BaseModel):
    """Announces an upload. `name`: of the dump; if left out, that of its top folder or archive."""

    model_config = ConfigDict(extra="forbid")

    files: Annotated[int, Field(ge=1, lt=2**31)]
    bytes: Count
    name: Annotated[str, Field(max_length=200)] = ""


class UploadRoom(Wire):
    """`limit`: bytes one upload may have; `free`: bytes left on the disk; `request`: bytes one request may carry;
    `hours`: how long an interrupted upload is kept."""

    limit: int
    free: int
    files: int
    request: int
    hours: float


class Upload(Wire):
    """`files`, `bytes`: announced; `whole`: whole files that arrived; `there`: bytes that arrived; `dump`: the finished dump."""

    id: str
    name: str
    files: int
    bytes: int
    whole: int
    there: int
    problems: list[Problem]
    dump: str | None


class UploadedFile(Wire):
    """`bytes`: bytes that have arrived; `size`: of the whole file"""

    path: str
    bytes: int
    size: int
