"""The built-in sample: two small dumps with a known fault, for a first look."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter, Response

from dumpscope import demo
from dumpscope.api.comparisons import start_comparison
from dumpscope.api.ingest import default_name, start_ingest
from dumpscope.api.models.bodies import NewComparison
from dumpscope.api.models.comparisons import Comparison, comparison
from dumpscope.api.replies import reply
from dumpscope.api.state import Shared, State
from dumpscope.index.comparisons.catalogue import list_comparisons
from dumpscope.index.dumps.catalogue import create_dump, list_dumps

router = APIRouter(tags=["comparisons"])


@router.post("/sample", response_model=Comparison)
def sample(state: Shared) -> Response:
    """Compare the sample's two dumps, or return their existing comparison."""
    for _, row in list_comparisons(state.database, q=demo.NAME, order="-created"):
        if row.name == demo.NAME and row.status in ("pending", "running", "done"):
            return reply(comparison(row))
    sides = [_registered(state, path) for path in demo.unpack(state.settings.data_dir / "demo")]
    row = start_comparison(NewComparison(target=sides[0], golden=sides[1], name=demo.NAME), state)
    return reply(comparison(row))


def _registered(state: State, path: Path) -> str:
    """Id of the dump at this path; it is read if it was not yet."""
    for _, row in list_dumps(state.database, q=str(path)):
        if row.path == str(path) and row.status != "failed":
            return row.id
    dump = create_dump(state.database, name=default_name(path), path=str(path))
    start_ingest(state, dump, str(path))
    return dump
