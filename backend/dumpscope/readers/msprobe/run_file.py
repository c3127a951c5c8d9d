"""run.json of a rank folder, or the config.json that a user keeps with a dump of msprobe."""

from __future__ import annotations

import os
from typing import Any, Final

import orjson

from dumpscope.domain.run import Run
from dumpscope.errors import Problem, UnreadableError
from dumpscope.readers.regular_file import open_regular
from dumpscope.texts import say
from dumpscope_format.paths import RUN_JSON, inside, safe_join
from dumpscope_format.run import BETWEEN_REGIONS, COMPILED_REGIONS, DEVICES, GROUPS, NOTES, SETTINGS, UNRECORDED

CONFIG_JSON: Final = "config.json"
SIZE_LIMIT: Final = 4 << 20
"""Bytes of a file; one of our own has some ten thousand."""
GRAPH_LIMIT: Final = 64 << 20
"""Bytes of the document of a compiled graph."""
NAME_LIMIT: Final = 40
"""Names kept of one group."""
CALL_LIMIT: Final = 400
"""Names kept of functions that are no nodes."""
LABEL_LIMIT: Final = 64
"""Letters kept of one name."""
TEXT_LIMIT: Final = 200
"""Letters kept of one value."""
_LOSSES: Final = ("lost_records", "failed_", "hook_error")
_UNKNOWN: Final = say("readers.how_run_made_not_known_nothing")


def read_run(folder: str, root: str, loc: str) -> tuple[Run | None, list[Problem]]:
    """How the rank in `folder` was run, None where nothing tells; root: folder that no link may leave; loc: of the rank."""
    problems: list[Problem] = []
    document = _object(os.path.join(folder, RUN_JSON), root, loc, problems)
    if document is not None:
        problems += _losses(document, loc)
        return _run(document), problems
    for place in dict.fromkeys((folder, root)):
        config = _object(os.path.join(place, CONFIG_JSON), root, loc, problems)
        if config is not None and isinstance(config.get("task"), str):
            section = config.get(config["task"])
            return _run({"settings": {**config, **(section if isinstance(section, dict) else {})}}), problems
    return None, problems


def argument_names(folder: str, root: str) -> dict[str, list[str]]:
    """Names of the arguments of functions and module classes, from our own run.json; empty without one."""
    document = _object(os.path.join(folder, RUN_JSON), root, "", []) or {}
    named = document.get("arguments")
    return {
        label: [str(name) for name in names]
        for label, names in (named.items() if isinstance(named, dict) else ())
        if isinstance(names, list)
    }


def compiled_regions(folder: str, root: str) -> dict[str, dict[str, Any]]:
    """What our own run.json says about each region of compiled code, by its node without direction; empty without one."""
    document = _object(os.path.join(folder, RUN_JSON), root, "", []) or {}
    regions = document.get(COMPILED_REGIONS)
    return {
        node: entry for node, entry in (regions.items() if isinstance(regions, dict) else ()) if isinstance(entry, dict)
    }


def was_closed(folder: str, root: str) -> bool:
    """Whether our own recorder closed the step's files as it should."""
    return (_object(os.path.join(folder, RUN_JSON), root, "", []) or {}).get("ended") == "closed"


def calls_between_regions(folder: str, root: str) -> int:
    """Number of calls that ran eagerly inside compiled code and are not recorded, as our own run.json counts them."""
    counts = (_object(os.path.join(folder, RUN_JSON), root, "", []) or {}).get("counts")
    number = counts.get(BETWEEN_REGIONS) if isinstance(counts, dict) else None
    return number if isinstance(number, int) else 0


def region_file(folder: str, root: str, path: object) -> dict[str, Any] | None:
    """A JSON document beside a compiled graph, None where it is not there. path: below the folder, as run.json names it

    Raises UnreadableError."""
    if not isinstance(path, str):
        return None
    full = safe_join(folder, path)
    if not os.path.isfile(full):
        return None
    problems: list[Problem] = []
    document = _object(full, root, "", problems, GRAPH_LIMIT)
    if document is None:
        raise UnreadableError(problems[0].message, where=full)
    return document


def _object(path: str, root: str, loc: str, problems: list[Problem], limit: int = SIZE_LIMIT) -> dict[str, Any] | None:
    """The JSON object in a file, None where there is none; what is wrong with it is noted."""
    if not os.path.lexists(path):
        return None
    name = os.path.basename(path)
    try:
        if os.path.islink(path) and not inside(root, path):
            raise UnreadableError(say("readers.link_out_dump"))
        with open_regular(path) as stream:
            text = stream.read(limit + 1)
        if len(text) > limit:
            raise UnreadableError(say("readers.larger_than_mib", size_limit=limit >> 20))
        data = orjson.loads(text)
        if not isinstance(data, dict):
            raise UnreadableError(say("readers.holds_not_object", name=type(data).__name__))
    except UnreadableError as error:
        why = error.detail
    except OSError as error:
        why = say("pipeline.cannot_read", reason=error.strerror)
    except ValueError as error:
        why = say("readers.no_json", error=error)
    else:
        return data
    problems.append(
        Problem(
            loc=f"{loc}/{name}".lstrip("/"),
            kind="settings",
            message=say("problem.then", name=name, why=why, rest=_UNKNOWN),
        )
    )
    return None


def _run(document: dict[str, Any]) -> Run:
    groups = {name: _texts(document.get(name)) for name in GROUPS}
    given = document.get("settings")
    settings = {**SETTINGS, **(given if isinstance(given, dict) else {})}
    groups["settings"] = {name: text for name in SETTINGS if (text := _text(settings[name])) is not None}
    devices = document.get(DEVICES)
    listed = devices[:NAME_LIMIT] if isinstance(devices, list) else []
    counted = document.get(UNRECORDED)
    unrecorded = {
        name[:TEXT_LIMIT]: number
        for name, number in list(counted.items() if isinstance(counted, dict) else ())[:CALL_LIMIT]
        if isinstance(number, int) and not isinstance(number, bool)
    }
    return Run(
        **groups,
        devices=[one[:TEXT_LIMIT] for one in listed if isinstance(one, str)],
        notes=_texts(document.get(NOTES)),
        unrecorded=unrecorded,
    )


def _texts(group: Any) -> dict[str, str]:
    if not isinstance(group, dict):
        return {}
    found: dict[str, str] = {}
    for name, value in group.items():
        text = _text(value)
        if text is not None and len(found) < NAME_LIMIT:
            found[name[:LABEL_LIMIT]] = text
    return found


def _text(value: Any) -> str | None:
    """A plain value, or a list of them, as text; None for anything else."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)[:TEXT_LIMIT]
    if isinstance(value, list):
        parts = [text for one in value[:NAME_LIMIT] if not isinstance(one, list) and (text := _text(one)) is not None]
        return ", ".join(parts)[:TEXT_LIMIT]
    return None


def _losses(document: dict[str, Any], loc: str) -> list[Problem]:
    """What the capture itself says went wrong."""
    counts = document.get("counts")
    found = [
        f"{name[:LABEL_LIMIT]} {number}"
        for name, number in (counts.items() if isinstance(counts, dict) else ())
        if isinstance(number, int) and number > 0 and name.startswith(_LOSSES)
    ]
    if not found:
        return []
    listed = ", ".join(sorted(found)[:NAME_LIMIT])
    message = say("readers.capture_counted_what_could_not_keep", listed=listed)
    return [Problem(loc=f"{loc}/{RUN_JSON}".lstrip("/"), kind="capture_losses", message=message)]
