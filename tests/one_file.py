"""Reads the page of a comparison in one file as its own script does."""

from __future__ import annotations

import base64
import gzip
import json
import re
from typing import Any


def packed(page: str, part: str) -> bytes:
    """A packed part of the file: "contents", "page", "style" or "plotly"."""
    found = re.search(rf'<script type="text/plain" id="{part}">([A-Za-z0-9+/=]*)</script>', page)
    assert found is not None, part
    return gzip.decompress(base64.b64decode(found[1]))


def contents(page: str) -> Any:
    return json.loads(packed(page, "contents"))
