"""The web application: REST below /api, the UI at its own addresses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Executor
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cache

from fastapi import FastAPI
from fastapi.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import BaseRoute

from dumpscope import __version__
from dumpscope.api import api_docs, pages
from dumpscope.api.http import error_body
from dumpscope.api.http.access import Guards
from dumpscope.api.http.methods import Head
from dumpscope.api.http.proxy_prefix import Unprefixed
from dumpscope.api.replies import StrictJSON
from dumpscope.api.routes import checkpoints, health, jobs, metrics, monitors, webhooks
from dumpscope.api.routes.comparisons import (
    catalogue as comparisons,
    exports,
    figures,
    matching,
    notes,
    plans,
    policies,
    results,
    source,
    suspects,
    trends,
)
from dumpscope.api.routes.dumps import (
    catalogue as dumps,
    figures as dump_figures,
    overflow,
    prechecks,
    reproduce,
    runs,
    sample,
    server_paths,
    transfers,
    uploads,
    watches,
)
from dumpscope.api.state import State
from dumpscope.domain.job import Job
from dumpscope.index.store.database import Database
from dumpscope.index.store.jobs import JobTable
from dumpscope.jobs.executors import Processes, make_executor
from dumpscope.jobs.runner import Runner
from dumpscope.pipeline.operators.precheck_job import PrecheckSetup
from dumpscope.pipeline.server.deliveries import Deliveries
from dumpscope.pipeline.server.job_kinds import WORKER_MODULES, job_kinds, record_end
from dumpscope.pipeline.server.watcher import Watcher
from dumpscope.pipeline.tasks.cleanup import remove_crash_remains
from dumpscope.pipeline.tasks.fan_out import release
from dumpscope.pipeline.tasks.temporary_folder import remove_abandoned_folders
from dumpscope.pipeline.uploads.unfinished import UnfinishedUploads
from dumpscope.settings import Settings

EXPIRY_SECONDS = 600.0
"""Time between two searches for expired uploads."""


def create_app_from_environment() -> FastAPI:
    """The application with settings from `DUMPSCOPE_*` only, for a server that makes it again on every reload (`make dev`)."""
    return create_app(Settings())


def create_app(settings: Settings, copies: Sequence[str] = ()) -> FastAPI:
    """The application for these settings. The database opens, and jobs start, with the server (its lifespan).

    copies: the result files, if the database is a copy of them
    """
    app = FastAPI(
        title="dumpscope",
        version=__version__,
        description="Find the operator that made two PyTorch runs diverge, from their dumps.",
        lifespan=_lifespan(settings, tuple(copies)),
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # Starlette's redirect forgets a proxy's prefix
        default_response_class=StrictJSON,
        separate_input_output_schemas=False,
        middleware=[
            Middleware(Unprefixed),
            Middleware(GZipMiddleware, minimum_size=pages.GZIP_BYTES, compresslevel=pages.GZIP_LEVEL),
            Middleware(Guards, settings=settings),
            Middleware(Head),
        ],
    )
    error_body.install(app)
    app.router.routes.extend(_routes())
    pages.install_assets(app)
    return app


@cache
def _routes() -> tuple[BaseRoute, ...]:
    """The routes of every application of this process. None knows its settings: a request brings what it needs (`state`)."""
    holder = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, default_response_class=StrictJSON)
    for module in (
        health,
        metrics,
        source,  # before dumps and results, whose node names hold slashes
        dumps,
        uploads,
        transfers,
        server_paths,
        watches,
        comparisons,
        sample,
        suspects,  # before results, whose node names hold slashes
        results,
        reproduce,
        runs,
        trends,
        overflow,
        matching,
        notes,
        prechecks,
        checkpoints,
        monitors,
        plans,
        policies,
        figures,
        dump_figures,
        exports,
        jobs,
        webhooks,
        api_docs,
    ):
        holder.include_router(
            module.router, prefix="/api", responses=error_body.RESPONSES
        )  # each level is searched again
    holder.include_router(pages.router)
    return tuple(holder.router.routes)


def _lifespan(settings: Settings, copies: tuple[str, ...]) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        state = await run_in_threadpool(_start, settings, copies)
        app.state.shared = state
        expiring = asyncio.create_task(_expire(state))
        try:
            yield
        finally:
            expiring.cancel()
            state.closing.set()
            await run_in_threadpool(_stop, state)

    return lifespan


async def _expire(state: State) -> None:
    while True:
        await run_in_threadpool(state.unfinished.expire)
        await asyncio.sleep(EXPIRY_SECONDS)


def _start(settings: Settings, copies: tuple[str, ...]) -> State:
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    executor: Executor = make_executor(settings.workers, modules=WORKER_MODULES)
    if isinstance(executor, Processes):
        executor.warm_up()
    database = Database.open(settings.database)
    database.keep_reserve()
    remove_crash_remains(database, settings.uploads, settings.unpacked, settings.prechecks, settings.data_dir)
    remove_abandoned_folders()
    table = JobTable(database)
    deliveries = Deliveries(database, settings.webhook_hosts)

    def ended(job: Job) -> None:
        record_end(database, job)
        deliveries.look_soon()

    runner = Runner(
        table,
        job_kinds(
            database, executor, settings.unpacked, PrecheckSetup(python=settings.python, folder=settings.prechecks)
        ),
        slots=settings.job_slots,
        ended=ended,
    )
    runner.start()
    watcher = Watcher(database, runner.submit, roots=settings.roots, settle=settings.watch_settle)
    watcher.start()
    deliveries.start()
    unfinished = UnfinishedUploads(settings.receiving, settings.upload_hours * 3600)
    return State(
        settings=settings,
        database=database,
        executor=executor,
        jobs=table,
        runner=runner,
        watcher=watcher,
        deliveries=deliveries,
        unfinished=unfinished,
        results=copies,
    )


def _stop(state: State) -> None:
    state.watcher.stop()
    state.runner.stop()
    state.deliveries.stop()
    state.executor.shutdown(wait=False, cancel_futures=True)
    release(state.database.url)
    state.database.close()
