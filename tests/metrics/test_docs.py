from __future__ import annotations

import re

import pytest

from dumpscope.domain.facts import TensorFacts


def test_every_measured_field_has_a_row_in_the_docs(pytestconfig: pytest.Config) -> None:
    text = (pytestconfig.rootpath / "docs" / "metrics.md").read_text()
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    named = set(re.findall(r"`(\w+)`", " ".join(rows)))
    assert named == set(TensorFacts.__dataclass_fields__)
