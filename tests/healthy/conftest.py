"""What the suites of passes share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pipeline.comparing import compare

from dumpscope.domain.result import Answer, Unit


@pytest.fixture
def ask(dumps: Any, tmp_path: Path) -> Any:
    """The answer to a pair of runs by their names, and the unit.

    dumps: a fixture of the suite, which makes the folder of a run by its name and task
    """

    def answer(target: str, golden: str, task: str) -> tuple[Answer, Unit]:
        found, (unit,) = compare(dumps(target, task), dumps(golden, task), folder=tmp_path / f"{target} {golden}")
        assert not [one for one in found.problems if "unreadable" in one.kind], found.problems
        return found, unit

    return answer
