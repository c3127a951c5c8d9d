"""What a client does, without doing it: generators that ask for requests and pauses, which a blocking or an asynchronous
client carries out. A step is sent the reply of its request."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import quote

from dumpscope.client.records import (
    Comparison,
    Dump,
    Job,
    Origin,
    Record,
    ServerError,
    Suspect,
    Watch,
    Webhook,
    WorkFailed,
    read,
)
from dumpscope.errors import UsageError
from dumpscope.texts import say

POLL_SECONDS: Final = (0.1, 2.0)
"""First and longest time between two looks at a job."""

Query = Mapping[str, Any]
Watcher = Callable[[Job], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """repeatable: the server takes it twice without harm, so it is sent again when the answer is lost; file: where the body of
    the reply goes, whole or not at all"""

    method: str
    path: str
    query: Query = field(default_factory=dict)
    body: Any = None
    content: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    parts: Sequence[tuple[str, tuple[str | None, bytes]]] = ()
    repeatable: bool | None = None
    file: Path | None = None

    @property
    def may_repeat(self) -> bool:
        return self.method in ("GET", "PUT", "DELETE") if self.repeatable is None else self.repeatable


@dataclass(frozen=True, slots=True)
class Pause:
    seconds: float


Result = TypeVar("Result")
Settled = TypeVar("Settled", Dump, Comparison)
Steps = Generator[Request | Pause, Any, Result]


def id_of(one: Dump | Comparison | Watch | Webhook | str) -> str:
    return one if isinstance(one, str) else one.id


def get(path: str, query: Query | None = None) -> Steps[Any]:
    return (yield Request(method="GET", path=path, query=query or {}))


def send(method: str, path: str, body: Any = None) -> Steps[Any]:
    return (yield Request(method=method, path=path, body=body))


def record(kind: type[Record], path: str) -> Steps[Record]:
    return read(kind, (yield from get(path)))


def node_path(comparison: Comparison | str, node: str, part: str = "nodes") -> str:
    return f"/comparisons/{id_of(comparison)}/{part}/{quote(node, safe='')}"


def words(filters: Query) -> dict[str, Any]:
    """Parameters of the address: `cls` is `class`, which is a word of Python; a list has several values."""
    return {"class" if name == "cls" else name: value for name, value in filters.items()}


def download(comparison: Comparison | str, kind: str, file: Path, query: Query) -> Steps[Path]:
    yield Request(method="GET", path=f"/comparisons/{id_of(comparison)}/export.{kind}", query=words(query), file=file)
    return file


def register(path: str, name: str | None, *, wait: bool, watch: Watcher | None) -> Steps[Dump]:
    accepted = yield from send("POST", "/dumps", {"path": path, **({} if name is None else {"name": name})})
    if wait:
        yield from finish(accepted["job"], watch)
    return (yield from record(Dump, f"/dumps/{accepted['id']}"))


def compare(
    target: Dump | str,
    golden: Dump | str,
    reference: Dump | str | None,
    name: str | None,
    options: Mapping[str, Any],
    *,
    wait: bool,
    watch: Watcher | None,
) -> Steps[Comparison]:
    body: dict[str, Any] = {"target": id_of(target), "golden": id_of(golden)}
    if reference is not None:
        body["reference"] = id_of(reference)
    if name is not None:
        body["name"] = name
    if options:
        body["options"] = dict(options)
    accepted = yield from send("POST", "/comparisons", body)
    if wait:
        yield from finish(accepted["job"], watch)
    return (yield from record(Comparison, f"/comparisons/{accepted['id']}"))


def diff_checkpoints(
    target: str, golden: str, name: str | None, rename: Sequence[str], watch: Watcher | None
) -> Steps[dict[str, Any]]:
    body = {"target": target, "golden": golden, "rename": list(rename), **({} if name is None else {"name": name})}
    accepted = yield from send("POST", "/checkpoint-diffs", body)
    yield from finish(accepted["job"], watch)
    place = f"/checkpoint-diffs/{accepted['id']}"
    found: dict[str, Any] = yield from get(f"{place}/summary")
    tensors = (yield from get(f"{place}/tensors", {"limit": 100}))["items"]
    return {"id": accepted["id"], **found, "tensors": tensors}


def examine_monitor(path: str, other: str | None, name: str | None, watch: Watcher | None) -> Steps[dict[str, Any]]:
    body = {"path": path, "other": other, "name": name}
    accepted = yield from send("POST", "/monitors", body)
    yield from finish(accepted["job"], watch)
    place = f"/monitors/{accepted['id']}"
    found: dict[str, Any] = yield from get(f"{place}/findings")
    anomalies = (yield from get(f"{place}/anomalies", {"limit": 100}))["items"]
    return {"id": accepted["id"], **found, "anomalies": anomalies}


def monitor_curves(
    monitor_id: str, metric: str, names: Sequence[str] | str, query: Query
) -> Steps[list[dict[str, Any]]]:
    series = [names] if isinstance(names, str) else list(names)
    asked = {"from" if key == "first" else "to" if key == "last" else key: value for key, value in query.items()}
    found = yield from get(f"/monitors/{monitor_id}/curves", {"metric": metric, "name": series, **asked})
    curves: list[dict[str, Any]] = found["curves"]
    return curves


def judge(comparison: Comparison | str, policy: str, watch: Watcher | None) -> Steps[Comparison]:
    row = read(Comparison, (yield from send("PATCH", f"/comparisons/{id_of(comparison)}", {"policy": policy})))
    if row.job is not None:
        yield from finish(row.job, watch)
    return (yield from record(Comparison, f"/comparisons/{row.id}"))


def finish(job_id: str, watch: Watcher | None) -> Steps[Job]:
    """Wait for the end of a job. Raises WorkFailed."""
    pause, longest = POLL_SECONDS
    while True:
        job = yield from record(Job, f"/jobs/{job_id}")
        if watch is not None:
            watch(job)
        if job.status in ("failed", "cancelled"):
            raise WorkFailed(job)
        if job.over:
            return job
        yield Pause(pause)
        pause = min(pause * 1.5, longest)


def settle(one: Settled, watch: Watcher | None) -> Steps[Settled]:
    """Wait for what is still read or compared; its state afterwards. Raises WorkFailed."""
    path = f"/dumps/{one.id}" if isinstance(one, Dump) else f"/comparisons/{one.id}"
    row = yield from record(type(one), path)
    if row.job is not None and row.status in ("pending", "running"):
        yield from finish(row.job, watch)
        row = yield from record(type(one), path)
    if row.status == "failed":
        raise ServerError(row.error or {"detail": ""}, int((row.error or {}).get("status", 0)))
    return row


def origins(comparison: Comparison | str) -> Steps[list[Origin]]:
    found = yield from get(f"/comparisons/{id_of(comparison)}/origins")
    return [read(Origin, one) for one in found["items"]]


def suspects(comparison: Comparison | str, step: int | None, rank: int | None) -> Steps[list[Suspect]]:
    found = yield from get(f"/comparisons/{id_of(comparison)}/suspects", {"step": step, "rank": rank})
    return [read(Suspect, one) for one in found["items"]]


def summary(comparison: Comparison | str) -> Steps[dict[str, Any]]:
    found: dict[str, Any] = yield from get(f"/comparisons/{id_of(comparison)}/summary")
    return found


def node(comparison: Comparison | str, name: str, step: int | None, rank: int | None) -> Steps[dict[str, Any]]:
    found: dict[str, Any] = yield from get(node_path(comparison, name), {"step": step, "rank": rank})
    return found


def source(comparison: Comparison | str, name: str, step: int | None, rank: int | None) -> Steps[dict[str, Any]]:
    place = f"{node_path(comparison, name)}/source"
    found: dict[str, Any] = yield from get(place, {"step": step, "rank": rank})
    return found


def values(comparison: Comparison | str, pair: int, query: Query) -> Steps[dict[str, Any]]:
    found: dict[str, Any] = yield from get(f"/comparisons/{id_of(comparison)}/pairs/{pair}/values", query)
    return found


def explain(comparison: Comparison | str, name: str, step: int | None, rank: int | None) -> Steps[str]:
    return str((yield from node(comparison, name, step, rank))["explanation"]["text"])


def import_prechecks(dump: Dump | str, path: str | None, lines: Iterable[str] | None) -> Steps[int]:
    """Rows that were stored. path: a folder below a root of the server; lines: those of a precheck.jsonl"""
    place = f"/dumps/{id_of(dump)}/prechecks"
    if (path is None) == (lines is None):
        raise UsageError(say("client.path_or_lines"))
    if path is not None:
        return int((yield from send("POST", place, {"path": path}))["rows"])
    kept = 0
    for piece in _pieces(lines or ()):
        kept += int((yield from send("POST", place, {"text": piece}))["rows"])
    return kept


def run_prechecks(
    dump: Dump | str, device: str, places: Mapping[str, Iterable[int]], *, wait: bool, watch: Watcher | None
) -> Steps[Job]:
    body = {"device": device, **{name: list(numbers) for name, numbers in places.items()}}
    accepted = yield from send("POST", f"/dumps/{id_of(dump)}/prechecks/run", body)
    if wait:
        return (yield from finish(accepted["job"], watch))
    return (yield from record(Job, f"/jobs/{accepted['job']}"))


def watch_folder(
    folder: Dump | str,
    partner: Dump | str | None,
    side: str,
    name: str | None,
    options: Mapping[str, Any],
) -> Steps[Watch]:
    body: dict[str, Any] = {"side": side}
    body |= {"dump": folder.id} if isinstance(folder, Dump) else {"path": folder}
    if partner is not None:
        body |= {"partner": partner.id} if isinstance(partner, Dump) else {"partner_path": partner}
    if name is not None:
        body["name"] = name
    if options:
        body["options"] = dict(options)
    return read(Watch, (yield from send("POST", "/watches", body)))


def pair_watch(watch: Watch | str, partner: Dump | str | None, side: str) -> Steps[Watch]:
    body = {"partner": None if partner is None else id_of(partner), "side": side}
    return read(Watch, (yield from send("PATCH", f"/watches/{id_of(watch)}", body)))


def create_webhook(
    url: str, kinds: Iterable[str] | None, states: Iterable[str] | None, about: Dump | Comparison | None
) -> Steps[Webhook]:
    body: dict[str, Any] = {"url": url}
    if kinds is not None:
        body["kinds"] = list(kinds)
    if states is not None:
        body["states"] = list(states)
    if about is not None:
        body["dump" if isinstance(about, Dump) else "comparison"] = about.id
    return read(Webhook, (yield from send("POST", "/webhooks", body)))


PIECE: Final = 2 << 20
"""Characters of lines sent at once; lines grow when they become JSON inside JSON."""


def _pieces(lines: Iterable[str]) -> Iterable[str]:
    """Texts of about PIECE characters, each beginning with the line that names the device."""
    head, held, size = "", [], 0
    for line in lines:
        if not head:
            head = line
            continue
        held.append(line)
        size += len(line)
        if size > PIECE:
            yield head + "".join(held)
            held, size = [], 0
    if held:
        yield head + "".join(held)
