"""A table of numbers as comma-separated values."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from dumpscope.domain.records import Number
from dumpscope.export.table.cell_text import cell


def plain_csv(columns: Sequence[str], rows: Sequence[Sequence[Number]]) -> str:
    """One heading, then the rows; numbers with all digits, non-finite ones as `nan`, `inf` and `-inf`, None as an empty cell."""
    sheet = io.StringIO()
    writer = csv.writer(sheet)
    writer.writerow(columns)
    writer.writerows([cell(value, "") for value in row] for row in rows)
    return sheet.getvalue()
