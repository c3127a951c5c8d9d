"""What each result format costs on a large comparison: CPU and wall seconds, bytes and rows a second.

    python bench/export_speed.py --nodes 100000

Two synthetic dumps of N nodes a side are compared once; every format is then written from the result in memory, and streamed
from a database as REST does, where the time to the first piece counts too.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from compare_statistics import make_pair

from dumpscope.domain.options import Options
from dumpscope.export.files import FORMATS, write_files
from dumpscope.export.table.unit_table import Table
from dumpscope.index.store.database import Database, sqlite_url
from dumpscope.pipeline.compare.in_process import Outcome, compare_layouts
from dumpscope.pipeline.results.exports import csv_text, export_units, json_document
from dumpscope.pipeline.results.report import report
from dumpscope.pipeline.results.save import save_comparison, save_copy
from dumpscope.readers import discover

MB = 1024 * 1024


def timed(work: Callable[[], int]) -> tuple[float, float, int]:
    """CPU seconds, wall seconds and what the work returned."""
    cpu, wall = time.process_time(), time.perf_counter()
    found = work()
    return time.process_time() - cpu, time.perf_counter() - wall, found


def write(folder: Path, name: str, outcome: Outcome) -> int:
    """Bytes of one format."""
    tables = [partial(Table, unit) for unit in outcome.units]
    files = write_files(
        folder, [name], outcome.answer, tables, lambda: report(outcome.answer, outcome.units), pairs=True
    )
    return sum(file.stat().st_size for file in files)


def stream(name: str, pieces: Iterable[str], rows: int) -> None:
    """Print when the first and the last piece came."""
    start = time.perf_counter()
    first = 0.0
    size = 0
    for piece in pieces:
        first = first or time.perf_counter() - start
        size += len(piece)
    total = time.perf_counter() - start
    print(f"{name:14} first piece {first:6.3f} s, all {total:6.2f} s, {size / MB:7.1f} MB, {rows / total:9.0f} rows/s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=100_000, help="nodes a side (default 100000)")
    parser.add_argument("--runs", type=int, default=1, help="runs of each format; the least CPU counts (default 1)")
    parser.add_argument("--keep", type=Path, help="folder for the dumps and results, kept for the next run")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        target, golden, _ = make_pair(folder, arguments.nodes)
        outcome = compare_layouts(
            discover(target), discover(golden), Options(), paths=(str(target), str(golden)), jobs=1
        )
        rows = sum(len(unit.items) for unit in outcome.units)
        print(
            f"{arguments.nodes} nodes a side, {rows} rows\n\n{'format':14} {'CPU s':>7} {'wall s':>7} {'MB':>8} {'us/row':>7}"
        )
        for name in FORMATS:
            tries = [timed(partial(write, folder / "written", name, outcome)) for _ in range(arguments.runs)]
            cpu, wall, size = min(tries)
            print(f"{name:14} {cpu:7.2f} {wall:7.2f} {size / MB:8.1f} {1e6 * cpu / rows:7.2f}", flush=True)
        print()
        database = Database.open(sqlite_url(Path(scratch) / "bench.db"))
        try:
            comparison = save_comparison(database, outcome, Options(), name="bench")
            answer, units = export_units(database, comparison, None, None)
            del outcome
            file = folder / "written" / "result.db"
            tries = [
                timed(lambda: save_copy(file, database, comparison, lambda: None).stat().st_size)
                for _ in range(arguments.runs)
            ]
            cpu, wall, size = min(tries)
            source = sum(one.stat().st_size for side in (target, golden) for one in side.rglob("*.json"))
            print(
                f"{'result file':14} {cpu:7.2f} {wall:7.2f} {size / MB:8.1f}, {size / source:.2f} of both dumps' JSON"
            )
            stream("csv streamed", csv_text(database, units), rows)
            stream("json streamed", json_document(database, answer, units, pairs=True), rows)
        finally:
            database.close()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    print(f"\npeak memory {peak / MB:.0f} MB")


if __name__ == "__main__":
    main()
