"""The section `acc_check` of a config.json, which says what the pre-check runs and where it keeps what is wrong."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

import yaml

from dumpscope.errors import UnreadableError, UsageError
from dumpscope.texts import say

SECTIONS: Final = ("acc_check", "run_ut")
"""The section's name, and its earlier one."""
LISTS: Final = ("white_list", "black_list")
_NAMESPACES: Final = ("functional", "tensor", "torch", "torch_npu")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckConfig:
    """only: bare names of the APIs to run, all where empty; but: not these; data: folder below which wrong calls are kept"""

    only: tuple[str, ...] = ()
    but: tuple[str, ...] = ()
    data: Path = Path()


def read_check_config(path: Path) -> CheckConfig:
    """Read the section, whatever `task` says; a relative error_data_path counts from the current folder, as msprobe has it.

    Raises UnreadableError, and UsageError that names the key that is wrong."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UnreadableError(str(error), where=str(path)) from error
    document = document if isinstance(document, dict) else {}
    named = next((name for name in SECTIONS if name in document), None)
    if named is None and document.get("task") not in SECTIONS:
        raise UsageError(
            say("pipeline.has_no_section_acc_check"), where=str(path), hint='{"task": "acc_check", "acc_check": {...}}'
        )
    section = document.get(named, {}) if named else {}
    if not isinstance(section, dict):
        raise UsageError(say("pipeline.no_object", named=named), where=str(path))
    only, but = (_names(section.get(key, []), f"{named}.{key}", path) for key in LISTS)
    data = section.get("error_data_path", "./")
    if not isinstance(data, str) or not Path(data).expanduser().is_dir():
        raise UsageError(
            say("pipeline.error_data_path_no_folder_there", named=named, data=f"{data!r}"), where=str(path)
        )
    return CheckConfig(only=only, but=but, data=Path(data).expanduser())


def require_known(names: tuple[str, ...], met: frozenset[str]) -> None:
    """Raise UsageError for a name that is no API: neither one that a capture wraps nor one of the dump (`met`)."""
    known = _wrapped() | met
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, 3)
            raise UsageError(
                say("pipeline.no_api_called", name=f"{name!r}"),
                hint=say("pipeline.close", names=", ".join(near)) if near else None,
            )


def _names(value: Any, key: str, path: Path) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise UsageError(say("pipeline.no_list_texts", key=key), where=str(path))
    return tuple(value)


def _wrapped() -> frozenset[str]:
    """Bare names that a capture makes nodes of; the file is read, nothing is imported."""
    place = importlib.util.find_spec("dumpscope_capture")
    folders = list(place.submodule_search_locations or ()) if place else []
    if not folders:
        return frozenset()
    document = yaml.safe_load(Path(folders[0], "calls", "support_wrap_ops.yaml").read_text(encoding="utf-8"))
    return frozenset(str(name) for part in _NAMESPACES for name in document.get(part) or ())
