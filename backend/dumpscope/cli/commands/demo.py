"""`dumpscope demo`: two real dumps with a known fault, compared and served."""

from __future__ import annotations

import sys
from pathlib import Path

from dumpscope.cli.answer import print_answer
from dumpscope.cli.app import FINE
from dumpscope.cli.ending import Ending
from dumpscope.cli.printing import line
from dumpscope.demo import NAME, unpack
from dumpscope.domain.options import Options
from dumpscope.pipeline.compare.in_process import compare_layouts
from dumpscope.readers import discover


def run(*, host: str | None, port: int | None, data_dir: Path | None, serve: bool) -> int:
    """Unpack, compare, print the answer, and serve the result until interrupted."""
    from dumpscope.cli.commands.serve import serve as serve_app, settings  # noqa: PLC0415

    chosen = settings(host=host, port=port, data_dir=data_dir)
    target, golden = unpack(chosen.data_dir / "demo")
    options = Options()
    outcome = compare_layouts(discover(target), discover(golden), options, paths=(str(target), str(golden)))
    print_answer(outcome.answer, outcome.units.places)
    line()
    sys.stdout.flush()
    if serve:
        from dumpscope.index.comparisons.catalogue import list_comparisons  # noqa: PLC0415
        from dumpscope.index.store.database import Database  # noqa: PLC0415
        from dumpscope.pipeline.results.save import keep  # noqa: PLC0415

        database = Database.open(chosen.database)
        try:
            known = [
                row.id for _, row in list_comparisons(database, q=NAME) if row.name == NAME and row.status == "done"
            ]
            comparison = known[0] if known else keep(database, outcome, options, name=NAME)
        finally:
            database.close()
        with Ending() as ending:
            serve_app(ending, chosen, f"/comparisons/{comparison}")
    return FINE
