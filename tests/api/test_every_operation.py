"""Whatever the OpenAPI document allows to be sent, no operation answers with a server error.

DUMPSCOPE_FUZZ_EXAMPLES: requests of each operation; few in the gate, 200 before a release (CONTRIBUTING.md).
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, Phase, given, settings

from api.conftest import BASE, Client, compare
from dumpscope.api.app import create_app
from dumpscope.settings import Settings
from dumpscope_format.monitor import FIRST_LINE, Group, Layout, layout_frame, values_frame

EXAMPLES = int(os.environ.get("DUMPSCOPE_FUZZ_EXAMPLES", "2"))
STARTS = frozenset({"POST /api/sample"})
"""Takes no argument and compares two dumps: once is enough."""


DOCUMENT = Path(__file__).parents[2] / "frontend" / "src" / "api" / "openapi.json"


def names() -> list[str]:
    """Method and path of every operation, from the document as it is stored: the program needs seconds to make it."""
    paths = json.loads(DOCUMENT.read_text(encoding="utf-8"))["paths"]
    return [f"{method.upper()} {path}" for path, methods in paths.items() for method in methods]


@cache
def operations() -> dict[str, Any]:
    """Operation by its method and path."""
    schema = schemathesis.openapi.from_dict(create_app(Settings()).openapi())
    found = (result.ok() for result in schema.get_all_operations())
    return {f"{one.method.upper()} {one.path}": one for one in found}


@pytest.fixture(scope="module")
def filled(dumps: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Client, dict[str, str]]]:
    """A server whose errors are replies, and ids of what is in it; only requests that read are sent with these."""
    folder = tmp_path_factory.mktemp("fuzzed")
    run = folder / "rank0.monitor"
    layout = Layout(0, ("loss",), (Group("grad_reduced", ("norm",), ("fc.weight",)),))
    frames = [values_frame(layout, step, [1.0], struct.pack("<f", step)) for step in range(40)]
    run.write_bytes(FIRST_LINE + layout_frame(layout) + b"".join(frames))
    app = create_app(Settings(data_dir=folder / "data", roots=[dumps, folder], executor="threads:1"))
    with TestClient(app, base_url=BASE, raise_server_exceptions=False) as client:
        comparison = compare(client, dumps / "target_fault", dumps / "golden")
        row = client.get(f"/api/comparisons/{comparison}").json()
        monitor = client.post("/api/monitors", json={"path": str(run), "other": str(run)}).json()["id"]
        yield (
            client,
            {"comparison_id": comparison, "dump_id": row["target"], "job_id": row["job"], "monitor_id": monitor},
        )


def test_every_operation_of_the_program_is_tried() -> None:
    assert set(names()) == operations().keys()


@pytest.mark.parametrize("name", names())
def test_no_request_that_the_document_allows_breaks_an_operation(
    filled: tuple[Client, dict[str, str]], name: str
) -> None:
    client, known = filled

    @settings(
        max_examples=1 if name in STARTS else EXAMPLES,
        deadline=None,
        derandomize=EXAMPLES < 10,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operations()[name].as_strategy())
    def send(case: Any) -> None:
        if case.method == "GET" and not name.endswith("/events"):
            case.path_parameters = {key: known.get(key, value) for key, value in (case.path_parameters or {}).items()}
        asked = case.as_transport_kwargs(base_url=BASE)
        asked.pop("cookies", None)
        if "data" in asked and not isinstance(asked["data"], dict):
            asked["content"] = asked.pop("data")
        asked["files"] = [  # a form holds text and bytes
            (key, (file, value if isinstance(value, bytes | str) else str(value)))
            for key, (file, value) in asked.get("files") or ()
        ] or None
        reply = client.request(**asked)
        assert reply.status_code < 500 or reply.status_code == 507, (asked, reply.text)

    send()
