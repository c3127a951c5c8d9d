"""docs/rest.md names what the interface really says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dumpscope import errors
from dumpscope.api.http.error_body import CODES

GUIDE = (Path(__file__).parents[2] / "docs" / "rest.md").read_text(encoding="utf-8")


def raised() -> dict[str, int]:
    """Error code -> status of every error of ours."""
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and hasattr(kind, "code")]
    return {kind.code: kind.status for kind in kinds}


@pytest.mark.parametrize(
    ("code", "status"), sorted({**{code: status for status, code in CODES.items()}, **raised()}.items())
)
def test_every_error_code_is_documented_with_its_status(code: str, status: int) -> None:
    paragraph = GUIDE[GUIDE.index("Errors have one body") : GUIDE.index("Lists are pages")]
    documented = dict(re.findall(r"`([a-z_]+)`(?:,)? (\d{3})", paragraph))
    assert documented.get(code) == str(status)
