"""How fast the REST interface answers on a large comparison: p50, p95 and largest reply of what the web UI asks for.

    python bench/api_latency.py --nodes 100000

Starts a server on two synthetic dumps, ingests, compares, then asks over HTTP, one request at a time, as a browser would.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from compare_statistics import make_pair
from measure import folder_size

MB = 1024 * 1024


P95, REPLY = 100.0, 200_000
"""Milliseconds within which 95 % of the replies come, and bytes of the largest."""
SEARCHES = (
    "module:layers.7.*", "line:model.py", "dtype:float32", "shape:8x512x1024", "api:linear", "err>1e-3", "score>2",
    "class:origin", "feeds:Functional.softmax.3.forward",
)  # fmt: skip


@contextmanager
def serve(root: Path, data: Path, settings: dict[str, str] | None = None) -> Iterator[httpx.Client]:
    """A client of a fresh `dumpscope serve` that may read `root`; the server ends with the block. settings: environment"""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(Path(sys.executable).with_name("dumpscope")), "serve", "--port", str(port)]
    log = data / "server.log"
    data.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "--data-dir", str(data), "--root", str(root)],
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **(settings or {})},
        )
    client = httpx.Client(base_url=f"http://127.0.0.1:{port}/api/", timeout=120)
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                client.get("health").raise_for_status()
                break
            except httpx.TransportError:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(log.read_text()[-2000:]) from None
                time.sleep(0.1)
        yield client
    finally:
        client.close()
        process.terminate()
        process.wait(timeout=30)


def finish(client: httpx.Client, job: str) -> None:
    """Wait for a job; raises RuntimeError with its reason when it does not end well."""
    while True:
        state = client.get(f"jobs/{job}").raise_for_status().json()
        if state["status"] == "done":
            return
        if state["status"] in ("failed", "cancelled"):
            raise RuntimeError(f"job {job}: {state['error']}")
        time.sleep(0.2)


def compare(client: httpx.Client, target: Path, golden: Path) -> str:
    """Register both dumps, compare them, return the comparison's id; prints how long each took."""
    ids = []
    for path in (target, golden):
        start = time.perf_counter()
        reply = client.post("dumps", json={"path": str(path)}).raise_for_status().json()
        finish(client, reply["job"])
        ids.append(reply["id"])
        print(f"ingest {path.name:28} {time.perf_counter() - start:8.2f} s")
    start = time.perf_counter()
    reply = client.post("comparisons", json={"target": ids[0], "golden": ids[1]}).raise_for_status().json()
    finish(client, reply["job"])
    print(f"{'compare and store':35} {time.perf_counter() - start:8.2f} s")
    return str(reply["id"])


def walk(client: httpx.Client, address: str, where: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Names of all nodes and the cursors of the pages that hold them."""
    names: list[str] = []
    cursors: list[str] = []
    more: dict[str, Any] = {}
    while True:
        page = client.get(address, params={**where, **more, "limit": 500}).raise_for_status().json()
        names += [row["name"] for row in page["items"]]
        if page["next"] is None:
            return names, cursors
        cursors.append(page["next"])
        more = {"cursor": page["next"]}


def questions(client: httpx.Client, base: str) -> dict[str, Callable[[], tuple[str, dict[str, Any]]]]:
    """What to ask, by name: each call gives the next address and its parameters."""
    unit = client.get(f"{base}/summary").raise_for_status().json()["units"][0]
    where = {"step": unit["step"], "rank": unit["rank"]}
    tops = client.get(f"{base}/tree", params=where).raise_for_status().json()["items"]
    names, cursors = walk(client, f"{base}/nodes", where)
    parents = [row["entry"] for row in tops if row["children"]]
    for _ in range(3):  # a few levels down, where the wide folders are
        below = [
            row
            for parent in parents[-20:]
            for row in client.get(f"{base}/tree", params={**where, "parent": parent}).raise_for_status().json()["items"]
        ]
        parents += [row["entry"] for row in below if row["children"]][:40]
    words = sorted({part for name in names for part in re.split(r"[.\d]+", name) if len(part) > 2})
    apis = sorted({name.split(".")[1] for name in names if not name.startswith("Module.")})
    chance = random.Random(7)
    dump = f"dumps/{client.get(base).raise_for_status().json()['target']}"
    keys = [row["id"] for row in client.get(f"{base}/pairs", params=where).raise_for_status().json()["items"]]
    return {
        "summary": lambda: (f"{base}/summary", {}),
        "tree, top": lambda: (f"{base}/tree", dict(where)),
        "tree, children": lambda: (f"{base}/tree", {**where, "parent": chance.choice(parents)}),
        "tree, reveal": lambda: (f"{base}/tree", {**where, "reveal": chance.choice(names)}),
        "tree, way to a node": lambda: (f"{base}/tree/levels", {**where, "reveal": chance.choice(names)}),
        "list, scrolled": lambda: (f"{base}/nodes", {**where, "cursor": chance.choice(cursors)}),
        "list, from any place": lambda: (f"{base}/nodes", {**where, "at": chance.randrange(len(names))}),
        "list, worst, from any place": lambda: (
            f"{base}/nodes",
            {**where, "sort": "-out_score", "at": chance.randrange(len(names))},
        ),
        "list, worst first": lambda: (f"{base}/nodes", {**where, "sort": "-out_score"}),
        "list, only no": lambda: (f"{base}/nodes", {**where, "verdict": "no"}),
        "list, around a node": lambda: (f"{base}/nodes", {**where, "around": chance.choice(names)}),
        "search": lambda: (f"{base}/nodes", {**where, "q": chance.choice(words)}),
        "search, around a node": lambda: (
            f"{base}/nodes",
            {**where, "q": chance.choice(words), "around": chance.choice(names)},
        ),
        "search, nothing found": lambda: (f"{base}/nodes", {**where, "q": f"absent{chance.random()}"}),
        "list, of one api": lambda: (f"{base}/nodes", {**where, "api": chance.choice(apis)}),
        "pairs, worst first": lambda: (f"{base}/pairs", {**where, "sort": "-score"}),
        "pairs, of one api": lambda: (f"{base}/pairs", {**where, "api": chance.choice(apis), "sort": "-score"}),
        "strip": lambda: (f"{base}/strip", {**where, "buckets": chance.randint(600, 1500)}),
        "node": lambda: (f"{base}/nodes/{chance.choice(names)}", dict(where)),
        "node, data flow": lambda: (f"{base}/nodes/{chance.choice(names)}/flow", dict(where)),
        "figure, error order": lambda: (
            f"{base}/figures/error-order",
            {**where, "node": chance.choice(names)},
        ),
        "figure, api distribution": lambda: (
            f"{base}/figures/api-distribution",
            {**where, "node": chance.choice(names)},
        ),
        "figure, all apis": lambda: (f"{base}/figures/api-errors", dict(where)),
        "figure, call over runs": lambda: (f"{base}/figures/call-runs", {**where, "node": chance.choice(names)}),
        "figure, error histogram": lambda: (f"{base}/figures/error-histogram", {**where, "node": chance.choice(names)}),
        "comparison": lambda: (base, {}),
        "comparisons": lambda: ("comparisons", {}),
        "origins": lambda: (f"{base}/origins", {}),
        "suspects": lambda: (f"{base}/suspects", dict(where)),
        "counts": lambda: (f"{base}/counts", dict(where)),
        "counts, of a search": lambda: (f"{base}/counts", {**where, "q": chance.choice(words)}),
        "node, reach": lambda: (f"{base}/nodes/{chance.choice(names)}/reach", dict(where)),
        "node, path": lambda: (f"{base}/nodes/{chance.choice(names)}/path", dict(where)),
        "node, source": lambda: (f"{base}/nodes/{chance.choice(names)}/source", dict(where)),
        "list, by name": lambda: (f"{base}/nodes", {**where, "sort": "name"}),
        "list, by class": lambda: (f"{base}/nodes", {**where, "sort": "-class"}),
        **{
            f"search, {re.split('[:>]', search)[0]}": (lambda search=search: (f"{base}/nodes", {**where, "q": search}))
            for search in SEARCHES
        },
        "search, reads": lambda: (f"{base}/nodes", {**where, "q": f"reads:{chance.choice(names)}"}),
        "pairs, in order": lambda: (f"{base}/pairs", dict(where)),
        "pairs, only no": lambda: (f"{base}/pairs", {**where, "verdict": "no", "sort": "-score"}),
        "pairs, of a search": lambda: (f"{base}/pairs", {**where, "q": chance.choice(words), "sort": "-score"}),
        "pair": lambda: (f"{base}/pairs/{chance.choice(keys)}", {}),
        "rank map": lambda: (f"{base}/rank-map", {"kind": "all", "q": chance.choice(words)}),
        "trends": lambda: (f"{base}/trends", {"kind": "all", "q": chance.choice(words)}),
        "trends, with a statistic": lambda: (f"{base}/trends", {"kind": "api", "statistic": "norm"}),
        "collectives": lambda: (f"{base}/collectives", {}),
        "notes": lambda: (f"{base}/notes", {}),
        "plan": lambda: (f"{base}/plan", {}),
        "match, leftovers": lambda: (f"{base}/nodes", {**where, "class": "structural"}),
        "dumps": lambda: ("dumps", {}),
        "dump, tree": lambda: (f"{dump}/tree", dict(where)),
        "dump, list": lambda: (f"{dump}/nodes", dict(where)),
        "dump, search": lambda: (f"{dump}/nodes", {**where, "q": chance.choice(words)}),
        "dump, node": lambda: (f"{dump}/nodes/{chance.choice(names)}", dict(where)),
        "dump, overflow": lambda: (f"{dump}/overflow", dict(where)),
        "dump, findings": lambda: (f"{dump}/findings", dict(where)),
        "dump, trends": lambda: (f"{dump}/trends", {"kind": "api"}),
        "dump, run": lambda: (f"{dump}/run", dict(where)),
        "jobs": lambda: ("jobs", {}),
    }


def ask(client: httpx.Client, name: str, question: Callable[[], tuple[str, dict[str, Any]]], times: int) -> bool:
    """Ask, print one line, and say whether all replies kept to P95 and REPLY (as the client decodes them)."""
    spans, sizes = [], []
    for _ in range(times):
        address, parameters = question()
        start = time.perf_counter()
        reply = client.get(address, params=parameters)
        spans.append((time.perf_counter() - start) * 1000)
        reply.raise_for_status()
        sizes.append(len(reply.content))
    spans.sort()
    p50, p95 = spans[len(spans) // 2], spans[min(len(spans) - 1, int(len(spans) * 0.95))]
    good = p95 <= P95 and max(sizes) <= REPLY
    print(f"{name:28} {p50:8.1f} {p95:8.1f} {spans[-1]:8.1f} {max(sizes) / 1000:10.1f} {'' if good else '   over'}")
    return good


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=100_000, help="nodes a side (default 100000)")
    parser.add_argument("--times", type=int, default=60, help="requests of each kind (default 60)")
    parser.add_argument("--keep", type=Path, help="folder for the dumps, kept for the next run")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        target, golden, _ = make_pair(folder, arguments.nodes)
        read = folder_size(target) + folder_size(golden)
        data = Path(scratch) / "data"
        with serve(folder, data) as client:
            comparison = compare(client, target, golden)
            stored = folder_size(data)
            print(f"{'database':35} {stored / MB:8.1f} MB  {stored / read:.2f} x input JSON ({read / MB:.1f} MB)")
            print(f"\n{'':28} {'p50 ms':>8} {'p95 ms':>8} {'max ms':>8} {'largest kB':>10}")
            asked = questions(client, f"comparisons/{comparison}")
            results = [ask(client, name, question, arguments.times) for name, question in asked.items()]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
