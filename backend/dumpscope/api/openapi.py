"""Print the OpenAPI document without a server: `python -m dumpscope.api.openapi`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from dumpscope.api.app import create_app
from dumpscope.settings import Settings


def document() -> str:
    """The document as stable, readable JSON text."""
    settings = Settings(host="127.0.0.1", token="", roots=[Path("/")], data_dir=Path("/nonexistent"))
    return json.dumps(create_app(settings).openapi(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(document())
