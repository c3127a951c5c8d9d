"""Node records as the JSON has them, with their containers; a call is rebuilt from these."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any, Final

from dumpscope.domain.records import RankRef
from dumpscope.readers.msprobe.journal import Replayed, is_journal
from dumpscope.readers.msprobe.json_decode import MARK
from dumpscope.readers.msprobe.json_members import Members
from dumpscope.readers.regular_file import open_regular

_WORDS: Final = {f"{MARK}NaN": "nan", f"{MARK}Infinity": "inf", f"{MARK}-Infinity": "-inf"}

Body = dict[str, Any]


def read_bodies(ref: RankRef, names: Collection[str] | None = None) -> dict[str, Body]:
    """Bodies by node name in the order of the file, those of `names` or all. What is not finite is "nan", "inf" or "-inf".

    Damaged records are left out; `read_rank` reports them. Raises UnreadableError where the file cannot be opened.
    """
    replayed = Replayed(ref.dump_json) if is_journal(ref.dump_json) else None
    found: dict[str, Body] = {}
    with replayed.dump() if replayed else open_regular(ref.dump_json) as stream:
        for run in Members(stream, loc=ref.dump_json, inside="data"):
            for name, body in run:
                if isinstance(body, dict) and (names is None or name in names):
                    found[name] = _plain(body)
    return found


def _plain(value: Any) -> Any:
    if type(value) is dict:
        return {key: _plain(part) for key, part in value.items()}
    if type(value) is list:
        return [_plain(part) for part in value]
    if type(value) is str and value.startswith(MARK):
        return _WORDS.get(value, value)
    if type(value) is float and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return value
