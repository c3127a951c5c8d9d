"""Arguments of a program's hook and switch, checked. Uses neither torch nor the disk, except to look at a path."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, Final

from dumpscope_capture.ptdbg.errors import Code, CompareException, DumpException, ParameterError
from dumpscope_capture.ptdbg.generations import STACK_MODES
from dumpscope_format.older_python import dataclass

MODES: Final = ("all", "list", "range", "stack", "acl", "api_list", "api_stack")
SIDES: Final = ("all", "forward", "backward", "input", "output")
SUMMARIES: Final = ("all", "summary", "md5")
HOOKS: Final = {"acc_cmp_dump": "dump", "overflow_check": "overflow"}
DUMP_MODES: Final = ("api", "acl", "model")
WORK_PATH: Final = "ASCEND_WORK_PATH"
DEFAULT_TAG: Final = "ptdbg_dump"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a dump goes. path: absolute, as the program may change its working directory; tag: for the folder below it"""

    path: str
    tag: str = DEFAULT_TAG

    @property
    def names_a_file(self) -> bool:
        return self.path.endswith(".pkl")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """Arguments of `register_hook`."""

    kind: str = "dump"
    dump_mode: str = "api"
    dump_config: str | None = None
    overflow_nums: int = 1
    rank: int | None = None
    dump_step: int | None = None
    need_replicate: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """Arguments of `set_dump_switch`. filtered: None if the generation decides"""

    mode: str = "all"
    scope: tuple[str, ...] = ()
    api_list: tuple[str, ...] = ()
    filtered: bool | None = None
    sides: tuple[str, ...] = ("all",)
    summary: str = "all"

    @property
    def stacks(self) -> bool:
        return self.mode in STACK_MODES


def check_place(fpath: object, dump_tag: object) -> Place:
    """Raises DumpException, ParameterError."""
    tag = _text("dump_tag", dump_tag)
    bad = next((mark for mark in tag if mark in "/\\\0"), None)
    if bad is not None or tag in (".", ".."):
        raise ParameterError("dump_tag", tag, f"the name of one folder, without {bad!r}" if bad else "a folder's name")
    if fpath is None:
        root = os.environ.get(WORK_PATH)
        if not root:
            raise DumpException(
                Code.INVALID_PATH,
                f"there is no path to dump to: give set_dump_path or PrecisionDebugger a path, or set {WORK_PATH}",
            )
        return Place(path=os.path.abspath(os.path.join(root, "dump_data")), tag=tag)
    if not isinstance(fpath, (str, os.PathLike)) or not os.fspath(fpath):
        raise DumpException(Code.INVALID_PATH, f"the path to dump to is {fpath!r}; it must be a text that is not empty")
    path = str(os.fspath(fpath))
    if "\0" in path:
        raise DumpException(
            Code.INVALID_PATH, f"the path to dump to, {path!r}, has the character '\\0', which no path can have"
        )
    return Place(path=os.path.abspath(path), tag=tag)


def check_root(place: Place, generation: str | None) -> Place:
    """Check that a folder can be made and written, and return the place. Raises DumpException: before training, not at a call."""
    wanted = os.path.dirname(place.path) if place.names_a_file or generation == "2.3" else place.path
    there = wanted
    while not os.path.lexists(there):
        there = os.path.dirname(there)
    file = [] if wanted == place.path else [f"api_stack_{os.path.basename(place.path)}"]
    _require_short([*os.path.relpath(wanted, there).split(os.sep), f"{place.tag}_v6.0", *file], there)
    if not os.path.isdir(there):
        raise DumpException(Code.INVALID_PATH, f"the path to dump to, {wanted}, cannot be made: {there} is no folder")
    if not os.access(there, os.W_OK | os.X_OK):
        raise DumpException(Code.PERMISSION, f"the path to dump to, {wanted}, cannot be written to: see {there}")
    return place


def _require_short(names: Sequence[str], folder: str) -> None:
    """Raises DumpException for a name that the disk of `folder` cannot hold."""
    try:
        limit = os.pathconf(folder, "PC_NAME_MAX")
    except (AttributeError, OSError, ValueError):
        return
    for name in names:
        length = len(os.fsencode(name))
        if length > limit:
            raise DumpException(
                Code.INVALID_PATH, f"the path to dump to has a name of {length} bytes; the disk takes {limit}: {name}"
            )


def check_hook(hook: object, options: dict[str, Any]) -> Hook:
    """Raises CompareException with code 11."""
    name = getattr(hook, "__name__", None)
    if name not in HOOKS:
        raise ParameterError("hook", name or hook, "acc_cmp_dump or overflow_check")
    known = {"overflow_nums", "dump_mode", "dump_config", "rank", "dump_step", "need_replicate"}
    for key in options:
        if key not in known:
            raise ParameterError("register_hook", key, "the options " + ", ".join(sorted(known)))
    mode = options.get("dump_mode", "api")
    if mode not in DUMP_MODES:
        raise ParameterError("dump_mode", mode, "api, acl or model")
    if mode == "model" and HOOKS[str(name)] == "overflow":
        raise ParameterError("dump_mode", mode, "api or acl, with overflow_check")
    config = options.get("dump_config")
    if mode == "acl" and not isinstance(config, (str, os.PathLike)):
        raise ParameterError("dump_config", config, "the path of a dump.json, with dump_mode acl")
    return Hook(
        kind=HOOKS[str(name)],
        dump_mode=mode,
        dump_config=None if config is None else str(os.fspath(config)),
        overflow_nums=check_count("overflow_nums", options.get("overflow_nums", 1)),
        rank=check_number("rank", options.get("rank")),
        dump_step=check_number("dump_step", options.get("dump_step")),
        need_replicate=check_flag("need_replicate", options.get("need_replicate", False)),
    )


def check_switch(
    mode: object, scope: object, api_list: object, filter_switch: object, sides: object, summary: str
) -> Switch:
    """Raises CompareException with code 11."""
    if mode not in MODES:
        raise ParameterError("mode", mode, ", ".join(MODES))
    names = _texts("scope", scope)
    words = _texts("api_list", api_list)
    allowed = {"list": range(1, 1 << 30), "range": (2,), "stack": range(3), "acl": (1,)}.get(str(mode))
    if allowed is not None and len(names) not in allowed:
        counts = {"list": "at least one name", "range": "the first and the last name", "acl": "one name"}
        raise ParameterError("scope", list(names), counts.get(str(mode), "no name, one, or the first and the last"))
    if mode == "api_list" and not words:
        raise ParameterError("api_list", list(words), "at least one name of an operator, with mode api_list")
    return Switch(
        mode=str(mode),
        scope=names,
        api_list=words,
        filtered=None if filter_switch is None else check_on("filter_switch", filter_switch),
        sides=_sides(sides),
        summary=summary,
    )


def check_on(name: str, value: object) -> bool:
    if value not in ("ON", "OFF"):
        raise ParameterError(name, value, "ON or OFF, in capitals")
    return value == "ON"


def check_flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise ParameterError(name, value, "True or False")
    return value


def check_count(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or (value < 1 and value != -1):
        raise ParameterError(name, value, "a number above 0, or -1 for no limit")
    return value


def check_number(name: str, value: object) -> int | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
        raise ParameterError(name, value, "a number from 0")
    return value


def check_steps(value: object) -> tuple[int, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(check_number("step", part) is not None for part in value):
        raise ParameterError("step", value, "a list of numbers from 0")
    return tuple(sorted(set(value)))


def check_summary(summary_mode: object, summary_only: object) -> str:
    if summary_mode is not None and summary_mode not in SUMMARIES:
        raise CompareException(Code.INVALID_PARAM, f"summary_mode is {summary_mode!r}; allowed: {', '.join(SUMMARIES)}")
    only = check_flag("summary_only", summary_only)
    if only and summary_mode is not None:
        raise ParameterError("summary_only", True, "not together with summary_mode: it means summary_mode='summary'")
    return "summary" if only else str(summary_mode or "all")


def _sides(value: object) -> tuple[str, ...]:
    if value is None:
        return ("all",)
    words: Sequence[object] = [value] if isinstance(value, str) else value if isinstance(value, (list, tuple)) else ()
    if not words or not all(word in SIDES for word in words):
        raise ParameterError("dump_mode", value, "a list of any of " + ", ".join(SIDES))
    return ("all",) if "all" in words else tuple(str(word) for word in words)


def _text(name: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ParameterError(name, value, "a text that is not empty")
    return value


def _texts(name: str, value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, (list, tuple)) or not all(isinstance(part, str) and part for part in value):
        raise ParameterError(name, value, "a list of names")
    parts: Iterable[str] = value
    return tuple(parts)
