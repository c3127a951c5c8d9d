"""What the server's replies become. Fields that a newer server adds are in `raw`; what an older one lacks has its default."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final, TypeVar

from dumpscope.errors import DumpscopeError
from dumpscope.texts import restore

if TYPE_CHECKING:
    import pandas

_NOT_FINITE: Final = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_NUMBERS: Final = frozenset({"in_score", "out_score", "in_error", "out_error", "score", "times"})
"""Fields of rows that hold numbers, or their words where they are not finite."""

Record = TypeVar("Record", bound="_Record")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Record:
    raw: Mapping[str, Any] = field(repr=False, compare=False, default_factory=dict)


def read(kind: type[Record], document: Mapping[str, Any]) -> Record:
    """A record from a reply."""
    known = {one.name for one in fields(kind)} - {"raw"}
    return kind(raw=document, **{name: value for name, value in document.items() if name in known})


@dataclass(frozen=True, slots=True, kw_only=True)
class Dump(_Record):
    """A dump that the server knows. status: pending, ready or failed; bytes: of its records"""

    id: str
    name: str = ""
    path: str = ""
    status: str = "pending"
    job: str | None = None
    error: Mapping[str, Any] | None = None
    framework: str | None = None
    task: str | None = None
    level: str | None = None
    steps: list[int] = field(default_factory=list)
    ranks: list[int] = field(default_factory=list)
    nodes: int = 0
    items: int = 0
    bytes: int = 0
    problems: list[Mapping[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job(_Record):
    """Work of the server. status: queued, running, done, failed or cancelled; progress: 0..1; eta: seconds left, if known"""

    id: str
    kind: str = ""
    subject: str = ""
    status: str = "queued"
    progress: float = 0.0
    message: str = ""
    eta: float | None = None
    error: Mapping[str, Any] | None = None

    @property
    def over(self) -> bool:
        return self.status in ("done", "failed", "cancelled")


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison(_Record):
    """A comparison. status: pending, running, done, failed or cancelled; outcome: agrees, diverged or not_fully_judged, None
    while there is no result; origin: the first cause, with node, kind, step and rank"""

    id: str
    name: str = ""
    status: str = "pending"
    job: str | None = None
    error: Mapping[str, Any] | None = None
    target: str = ""
    golden: str = ""
    policy: str = ""
    mode: str | None = None
    counts: Mapping[str, int] | None = None
    verdict: str | None = None
    outcome: str | None = None
    origin: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin(_Record):
    """A call that computes something wrong, see docs/verdicts.md. explains: further differing calls that follow from it"""

    node: str
    kind: str = ""
    step: int = 0
    rank: int = 0
    confidence: float = 0.0
    confidence_word: str = ""
    evidence: str = ""
    advice: str = ""
    explains: int = 0
    module: str = ""
    called_at: str = ""
    stack: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect(_Record):
    """A call, or a setting (then node is None), to look at. times: error of the output over that of the input"""

    number: int
    kind: str = ""
    node: str | None = None
    step: int | None = None
    rank: int | None = None
    in_error: float | str | None = None
    out_error: float | str | None = None
    times: float | str | None = None
    why: str = ""
    module: str = ""
    called_at: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch(_Record):
    """A folder that the server watches. dump, partner, comparison: ids; condition: waiting, looking, growing, ended, still, gone,
    outside or unreadable; whole: steps that are complete"""

    id: str
    dump: str = ""
    path: str = ""
    side: str = "target"
    partner: str | None = None
    comparison: str | None = None
    condition: str = "looking"
    step: int | None = None
    calls: int | None = None
    whole: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook(_Record):
    """An address to which the server sends the ends of jobs. subject: id of the comparison or dump that they are about, None for
    all; secret: only of one that was just made"""

    id: str
    url: str = ""
    kinds: list[str] = field(default_factory=list)
    states: list[str] = field(default_factory=list)
    subject: str | None = None
    secret: str = field(default="", repr=False)


class ServerError(DumpscopeError):
    """The server refused a request or did not answer. reply_status: of HTTP, 0 without an answer; reply_code: the word `error`"""

    def __init__(self, document: Mapping[str, Any], reply_status: int) -> None:
        hint = document.get("hint")
        detail = restore(str(document.get("detail", "")), document.get("said"))
        super().__init__(detail, hint=None if hint is None else restore(str(hint), document.get("hint_said")))
        self.reply_status = reply_status
        self.reply_code = str(document.get("error", ""))


class WorkFailed(ServerError):
    """A job failed or was cancelled."""

    def __init__(self, job: Job) -> None:
        known = job.error or {"detail": f"the job was {job.status}", "error": job.status}
        super().__init__(known, int(known.get("status", 0)))
        self.job = job


def to_frame(rows: Iterable[Mapping[str, Any]]) -> pandas.DataFrame:
    """A table with a line per row. Numbers that travel as words (nan, inf) are numbers; the metrics of item pairs have a column
    each."""
    import pandas  # noqa: PLC0415

    frame: pandas.DataFrame = pandas.DataFrame([_flat(row) for row in rows])
    return frame


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if name == "metrics" and isinstance(value, Mapping):
            flat.update((metric, _number(one)) for metric, one in value.items())
        else:
            flat[name] = _number(value) if name in _NUMBERS else value
    return flat


def _number(value: Any) -> Any:
    return _NOT_FINITE.get(value, value) if isinstance(value, str) else value
