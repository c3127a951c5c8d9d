"""`dumpscope demo`: two real dumps with a known fault, compared and served."""

from __future__ import annotations

import sys
from typing import Annotated

from dumpscope.cli.commands.compare import print_answer
from dumpscope.cli.commands.serve import run_server, settings
from dumpscope.cli.ending import Ending
from dumpscope.cli.exit_codes import COMPARED
from dumpscope.cli.options import DataDir, Host, Port
from dumpscope.cli.parser import Option
from dumpscope.cli.printing import line
from dumpscope.demo import NAME, unpack
from dumpscope.domain.options import Options
from dumpscope.pipeline.compare.in_process import compare_layouts
from dumpscope.readers import discover


def demo(
    host: Host = None,
    port: Port = None,
    data_dir: DataDir = None,
    no_serve: Annotated[bool, Option("--no-serve")] = False,
) -> int:
    """Compare two bundled real dumps that hold a known fault, and serve the result."""
    chosen = settings(host=host, port=port, data_dir=data_dir)
    target, golden = unpack(chosen.data_dir / "demo")
    options = Options()
    outcome = compare_layouts(discover(target), discover(golden), options, paths=(str(target), str(golden)))
    print_answer(outcome)
    line()
    sys.stdout.flush()
    if not no_serve:
        from dumpscope.index.comparisons.catalogue import list_comparisons  # noqa: PLC0415
        from dumpscope.index.store.database import Database  # noqa: PLC0415
        from dumpscope.pipeline.results.save import save_comparison  # noqa: PLC0415

        database = Database.open(chosen.database)
        try:
            known = [
                row.id
                for _, row in list_comparisons(database, q=NAME)
                if row.name == NAME and row.status == "done" and row.answer is not None and not row.answer.older
            ]
            comparison = known[0] if known else save_comparison(database, outcome, options, name=NAME)
        finally:
            database.close()
        with Ending() as ending:
            run_server(ending, chosen, f"/comparisons/{comparison}")
    return COMPARED
