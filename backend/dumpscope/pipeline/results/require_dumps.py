"""Whether the dumps of a comparison are here: a result file holds what was measured, not the dumps."""

from __future__ import annotations

import os
from collections.abc import Iterable

from dumpscope.errors import ConflictError
from dumpscope.index.dumps.catalogue import get_dump
from dumpscope.index.dumps.load_rank import rank_headers, rank_places
from dumpscope.index.store.database import Database
from dumpscope.texts import say

_HINT = say("pipeline.give_dumps_themselves_register_upload_them")


def require_dumps(database: Database, dump_ids: Iterable[str]) -> None:
    """Raise ConflictError where a dump that was read is not complete here: comparing it again would find less than before."""
    for dump_id in dump_ids:
        dump = get_dump(database, dump_id)
        if dump.status != "ready":
            continue
        places = rank_places(database, dump_id)
        if not places or any(place.joined for place in places.values()):
            raise ConflictError(
                say("pipeline.dump_only_what_came_comparison_here", name=dump.name), where=dump.path, hint=_HINT
            )
        for header in rank_headers(database, dump_id):
            if header.data_dir is not None and not os.path.isdir(header.data_dir):
                raise ConflictError(
                    say("pipeline.tensor_files_dump_not_here", name=dump.name), where=header.data_dir, hint=_HINT
                )
