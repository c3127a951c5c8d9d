"""Dumps of one model split in many ways (see make_dumps), and comparisons of them as the command line makes them."""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dumpscope.domain.options import Options
from dumpscope.pipeline.compare.in_process import Outcome, compare_layouts
from dumpscope.readers import discover

ARCHIVE = Path(__file__).parents[1] / "data" / "parallel.tar.xz"


@pytest.fixture(scope="session")
def splits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of dumps by name (see make_dumps.RUNS)."""
    folder = tmp_path_factory.mktemp("splits")
    with tarfile.open(ARCHIVE) as tar:
        tar.extractall(folder)  # our own archive
    return folder


@pytest.fixture(scope="session")
def compared(splits: Path) -> Iterator[Callable[..., Outcome]]:
    """Compares two of the dumps by name; each pair once."""
    known: dict[tuple[object, ...], Outcome] = {}

    def made(target: str, golden: str, **options: Any) -> Outcome:
        key = target, golden, repr(sorted(options.items()))
        if key not in known:
            layouts = discover(splits / target), discover(splits / golden)
            known[key] = compare_layouts(*layouts, Options(**options), paths=(target, golden), jobs=1)
        return known[key]

    yield made
    known.clear()
