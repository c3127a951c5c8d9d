"""Compares two dumps on a server in this process and prints what it says of the origins, as JSON.

python served_origins.py DATA_FOLDER TARGET GOLDEN
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from fastapi.testclient import TestClient

from dumpscope.api.app import create_app
from dumpscope.settings import Settings


def main(folder: Path, target: Path, golden: Path) -> None:
    settings = Settings(data_dir=folder, roots=[target.parent, golden.parent], executor="threads:2")
    with TestClient(create_app(settings), base_url="http://127.0.0.1:8000") as client:
        ids = [client.post("/api/dumps", json={"path": str(path)}).json()["id"] for path in (target, golden)]
        comparison = client.post("/api/comparisons", json={"target": ids[0], "golden": ids[1]}).json()["id"]
        address = f"/api/comparisons/{comparison}"
        while client.get(address).json()["status"] in ("pending", "running", "queued"):
            time.sleep(0.05)
        replies = (client.get(address), client.get(f"{address}/summary"), client.get(f"{address}/origins"))
        print(json.dumps([reply.json() for reply in replies]))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
