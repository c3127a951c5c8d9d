"""The asynchronous client: the methods of `Client`, awaited. Files are read and written in the loop's own thread."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import httpx

from dumpscope.client import exchange, steps, uploads
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
    read,
    to_frame,
)
from dumpscope.client.steps import (
    Pause,
    Query,
    Request,
    Steps,
    Watcher,
    download,
    id_of,
    node_path,
    run_prechecks,
    words,
)

if TYPE_CHECKING:
    import pandas

Result = TypeVar("Result")
Waited = TypeVar("Waited", Dump, Comparison)


class AsyncClient:
    """A server's REST interface for asyncio. Use as a context, or await `close`. Arguments and errors are those of `Client`."""

    def __init__(
        self,
        server: str | None = None,
        *,
        token: str | None = None,
        tries: int = exchange.TRIES,
        seconds: float = exchange.SECONDS,
    ) -> None:
        self.home = exchange.home_of(server)
        """Address of the server's page, without a slash at its end."""
        self.base = f"{self.home}/api"
        self._http = httpx.AsyncClient(**exchange.settings(token, seconds))
        self._tries = tries

    async def close(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def health(self) -> dict[str, Any]:
        """Version, database and executor of the server; `status` is "ok", or "no_workers"."""
        return await self._run(steps.get("/health"))

    # -- dumps ---------------------------------------------------------------------------------------------------------

    async def register(
        self, path: str, *, name: str | None = None, wait: bool = True, watch: Watcher | None = None
    ) -> Dump:
        """A dump that is on the server, below one of its roots. watch: called with every state of the job"""
        return await self._run(steps.register(path, name, wait=wait, watch=watch))

    async def upload(
        self,
        path: str | Path,
        *,
        name: str | None = None,
        wait: bool = True,
        sent: uploads.Sent | None = None,
        watch: Watcher | None = None,
    ) -> Dump:
        """A dump from a folder or archive that is here. Called again after a failure it goes on with what has arrived.
        sent: called with the bytes that have arrived, and with all"""
        return await self._run(uploads.upload(path, name, wait=wait, sent=sent, watch=watch))

    async def dump(self, dump: Dump | str) -> Dump:
        return await self._run(steps.record(Dump, f"/dumps/{id_of(dump)}"))

    async def delete_dump(self, dump: Dump | str) -> None:
        await self._run(steps.send("DELETE", f"/dumps/{id_of(dump)}"))

    def dumps(self, q: str = "") -> AsyncIterator[Dump]:
        """Dumps whose name contains `q`, newest first."""
        return self._records(Dump, "/dumps", {"q": q})

    async def prechecks(self, dump: Dump | str) -> dict[str, Any]:
        """Number of calls by the result of running them alone (docs/proof.md)."""
        return await self._run(steps.get(f"/dumps/{id_of(dump)}/prechecks"))

    async def import_prechecks(
        self, dump: Dump | str, *, path: str | None = None, lines: Iterable[str] | None = None
    ) -> int:
        """Import a folder on the server, or the lines of a precheck.jsonl that is here. Returns the number of stored rows."""
        return await self._run(steps.import_prechecks(dump, path, lines))

    async def run_prechecks(
        self,
        dump: Dump | str,
        *,
        device: str = "cpu",
        steps: Iterable[int] = (),
        ranks: Iterable[int] = (),
        wait: bool = True,
        watch: Watcher | None = None,
    ) -> Job:
        """Have the server run every call of a dump alone, if it has a Python with torch; `prechecks` tells the result.
        Raises WorkFailed."""
        places = {"steps": steps, "ranks": ranks}
        return await self._run(run_prechecks(dump, device, places, wait=wait, watch=watch))

    async def cancel_prechecks(self, dump: Dump | str) -> None:
        """End the run; earlier results stay."""
        await self._run(steps.send("POST", f"/dumps/{id_of(dump)}/prechecks/cancel"))

    # -- watched folders -----------------------------------------------------------------------------------------------

    async def watch_folder(
        self,
        folder: Dump | str,
        *,
        partner: Dump | str | None = None,
        side: str = "target",
        name: str | None = None,
        **options: Any,
    ) -> Watch:
        """Have new steps and ranks of a folder read as they become whole, and compared with a partner. folder: a path on the
        server, also of an empty folder, or a dump; partner: likewise, a path is then watched as well; side: of the folder;
        options: of the comparison"""
        return await self._run(steps.watch_folder(folder, partner, side, name, options))

    def watches(self) -> AsyncIterator[Watch]:
        """Watched folders, newest first."""
        return self._records(Watch, "/watches", {})

    async def watch(self, watch: Watch | str) -> Watch:
        return await self._run(steps.record(Watch, f"/watches/{id_of(watch)}"))

    async def pair_watch(self, watch: Watch | str, partner: Dump | str | None, *, side: str = "target") -> Watch:
        """Name another partner of a watch, a dump or its id, or none; what was compared stays."""
        return await self._run(steps.pair_watch(watch, partner, side))

    async def stop_watching(self, watch: Watch | str) -> None:
        """The dump and its comparison stay."""
        await self._run(steps.send("DELETE", f"/watches/{id_of(watch)}"))

    # -- webhooks ------------------------------------------------------------------------------------------------------

    async def create_webhook(
        self,
        url: str,
        *,
        kinds: Iterable[str] | None = None,
        states: Iterable[str] | None = None,
        about: Dump | Comparison | None = None,
    ) -> Webhook:
        """Have the ends of jobs sent to an address. Keep the `secret` of the answer: it is not shown again, and `verify_webhook`
        needs it. kinds: ingest, update, compare, rejudge, precheck; states: done, failed, cancelled; all if left out"""
        return await self._run(steps.create_webhook(url, kinds, states, about))

    def webhooks(self) -> AsyncIterator[Webhook]:
        """Webhooks, newest first, without their secrets."""
        return self._records(Webhook, "/webhooks", {})

    async def delete_webhook(self, webhook: Webhook | str) -> None:
        await self._run(steps.send("DELETE", f"/webhooks/{id_of(webhook)}"))

    def deliveries(self, webhook: Webhook | str) -> AsyncIterator[dict[str, Any]]:
        """What was or is to be sent to a webhook, newest first."""
        return self._rows(f"/webhooks/{id_of(webhook)}/deliveries", {})

    # -- comparisons ---------------------------------------------------------------------------------------------------

    async def compare(
        self,
        target: Dump | str,
        golden: Dump | str,
        *,
        reference: Dump | str | None = None,
        name: str | None = None,
        wait: bool = True,
        watch: Watcher | None = None,
        **options: Any,
    ) -> Comparison:
        """Compare two dumps. reference: a third, more exact run; options: those of docs/rest.md (policy, steps, ranks, ...).
        Raises WorkFailed."""
        return await self._run(steps.compare(target, golden, reference, name, options, wait=wait, watch=watch))

    async def wait(self, one: Waited, *, watch: Watcher | None = None) -> Waited:
        """The dump or comparison once its job has ended. Raises WorkFailed."""
        return await self._run(steps.settle(one, watch))

    async def job(self, job_id: str) -> Job:
        return await self._run(steps.record(Job, f"/jobs/{job_id}"))

    async def comparison(self, comparison: Comparison | str) -> Comparison:
        return await self._run(steps.record(Comparison, f"/comparisons/{id_of(comparison)}"))

    def comparisons(self, q: str = "") -> AsyncIterator[Comparison]:
        """Comparisons whose name contains `q`, newest first."""
        return self._records(Comparison, "/comparisons", {"q": q})

    async def diff_checkpoints(
        self,
        target: str,
        golden: str,
        *,
        name: str | None = None,
        rename: Sequence[str] = (),
        watch: Watcher | None = None,
    ) -> dict[str, Any]:
        """Compare two checkpoints on the server, below its roots, and wait: the summary, `id`, and the worst `tensors`."""
        return await self._run(steps.diff_checkpoints(target, golden, name, rename, watch))

    async def examine_monitor(
        self, path: str, *, other: str | None = None, name: str | None = None, watch: Watcher | None = None
    ) -> dict[str, Any]:
        """Examine a monitored run on the server, below its roots, and wait: findings, `id`, and the gravest 100 `anomalies`.
        other: a run that is known to be right"""
        return await self._run(steps.examine_monitor(path, other, name, watch))

    async def monitor_curves(
        self, monitor_id: str, metric: str, names: Sequence[str] | str, **query: Any
    ) -> list[dict[str, Any]]:
        """Series of a monitored run, and of the other one, over its steps. query: statistic, rank, first, last, points"""
        return await self._run(steps.monitor_curves(monitor_id, metric, names, query))

    async def judge(self, comparison: Comparison | str, policy: str, *, watch: Watcher | None = None) -> Comparison:
        """Judge by another policy: a name, or the text of a policy file."""
        return await self._run(steps.judge(comparison, policy, watch))

    async def cancel(self, comparison: Comparison | str) -> None:
        await self._run(steps.send("POST", f"/comparisons/{id_of(comparison)}/cancel"))

    async def delete_comparison(self, comparison: Comparison | str) -> None:
        await self._run(steps.send("DELETE", f"/comparisons/{id_of(comparison)}"))

    # -- results -------------------------------------------------------------------------------------------------------

    async def summary(self, comparison: Comparison | str) -> dict[str, Any]:
        """The document of `dumpscope compare --json`, and more (docs/rest.md)."""
        return await self._run(steps.summary(comparison))

    async def origins(self, comparison: Comparison | str) -> list[Origin]:
        """The causes, the first first."""
        return await self._run(steps.origins(comparison))

    async def suspects(
        self, comparison: Comparison | str, *, step: int | None = None, rank: int | None = None
    ) -> list[Suspect]:
        """At most 10 calls to look at, in order."""
        return await self._run(steps.suspects(comparison, step, rank))

    async def node(
        self, comparison: Comparison | str, node: str, *, step: int | None = None, rank: int | None = None
    ) -> dict[str, Any]:
        """One call of both sides with its item pairs, stacks and explanation."""
        return await self._run(steps.node(comparison, node, step, rank))

    async def explain(
        self, comparison: Comparison | str, node: str, *, step: int | None = None, rank: int | None = None
    ) -> str:
        """A call in one paragraph."""
        return await self._run(steps.explain(comparison, node, step, rank))

    async def source(
        self, comparison: Comparison | str, node: str, *, step: int | None = None, rank: int | None = None
    ) -> dict[str, Any]:
        """The lines of source around the line that made a call, of both sides beside each other (docs/rest.md)."""
        return await self._run(steps.source(comparison, node, step, rank))

    async def values(self, comparison: Comparison | str, pair: int, **query: Any) -> dict[str, Any]:
        """Numbers of both sides around an element of a pair of tensors, the worst one if no other is named. pair: the `id` of an
        item of `node` or `pairs`; query: at, axes, rows, columns (docs/rest.md)"""
        return await self._run(steps.values(comparison, pair, query))

    def nodes(self, comparison: Comparison | str, **filters: Any) -> AsyncIterator[dict[str, Any]]:
        """Calls of one step and rank, all pages. filters: step, rank, verdict, api, q, sort, ...; `cls` for `class`"""
        return self._rows(f"/comparisons/{id_of(comparison)}/nodes", words(filters))

    def pairs(self, comparison: Comparison | str, **filters: Any) -> AsyncIterator[dict[str, Any]]:
        """Item pairs of one step and rank, all pages. filters: step, rank, verdict, api, q, node, sort"""
        return self._rows(f"/comparisons/{id_of(comparison)}/pairs", words(filters))

    async def node_frame(self, comparison: Comparison | str, **filters: Any) -> pandas.DataFrame:
        """`nodes` as a table."""
        return to_frame([row async for row in self.nodes(comparison, **filters)])

    async def pair_frame(self, comparison: Comparison | str, **filters: Any) -> pandas.DataFrame:
        """`pairs` as a table with a column per metric."""
        return to_frame([row async for row in self.pairs(comparison, **filters)])

    async def export(self, comparison: Comparison | str, kind: str, file: str | Path, **query: Any) -> Path:
        """Write a file: csv, xlsx, json, html, junit.xml, txt or db. query: step, rank, pairs, lang, bom, filters"""
        return await self._run(download(comparison, kind, Path(file), query))

    # -- notes ---------------------------------------------------------------------------------------------------------

    def notes(self, comparison: Comparison | str) -> AsyncIterator[dict[str, Any]]:
        """Notes on calls of the two dumps."""
        return self._rows(f"/comparisons/{id_of(comparison)}/notes", {})

    async def set_note(self, comparison: Comparison | str, node: str, standing: str = "note", text: str = "") -> None:
        """Set the note on a call. standing: accepted, known, ticket or note"""
        body = {"standing": standing, "text": text}
        await self._run(steps.send("PUT", node_path(comparison, node, "notes"), body))

    async def remove_note(self, comparison: Comparison | str, node: str) -> None:
        await self._run(steps.send("DELETE", node_path(comparison, node, "notes")))

    # -- how it is done ------------------------------------------------------------------------------------------------

    async def _run(self, work: Steps[Result]) -> Result:
        try:
            asked = next(work)
            while True:
                try:
                    reply = await self._do(asked)
                except ServerError as error:
                    asked = work.throw(error)
                else:
                    asked = work.send(reply)
        except StopIteration as end:
            result: Result = end.value
            return result

    async def _do(self, asked: Request | Pause) -> Any:
        if isinstance(asked, Pause):
            return await asyncio.sleep(asked.seconds)
        for attempt in range(self._tries):
            last = attempt == self._tries - 1
            reply: httpx.Response | None = None
            try:
                if asked.file is not None:
                    return await self._fetch(asked, asked.file)
                reply = await self._http.request(**exchange.written(self.base, asked))
                if last or reply.status_code not in exchange.BUSY:
                    return exchange.read_reply(reply)
            except httpx.TransportError as error:
                if last or not exchange.may_repeat(asked, error):
                    raise exchange.no_answer(self.base, error) from error
            await asyncio.sleep(exchange.pause_before(attempt, reply))
        raise AssertionError("the last try returns or raises")

    async def _fetch(self, request: Request, file: Path) -> None:
        part = exchange.part_of(file)
        try:
            async with self._http.stream(**exchange.written(self.base, request)) as reply:
                if not reply.is_success:
                    await reply.aread()
                    exchange.read_reply(reply)
                with part.open("wb") as out:
                    async for piece in reply.aiter_bytes():
                        out.write(piece)
            part.replace(file)
        finally:
            part.unlink(missing_ok=True)

    async def _rows(self, path: str, query: Query) -> AsyncIterator[dict[str, Any]]:
        cursor = None
        while True:
            page = await self._run(steps.get(path, {"limit": 500, **query, "cursor": cursor}))
            for row in page["items"]:
                yield row
            cursor = page["next"]
            if cursor is None:
                return

    async def _records(self, kind: type[Record], path: str, query: Query) -> AsyncIterator[Record]:
        async for row in self._rows(path, query):
            yield read(kind, row)
