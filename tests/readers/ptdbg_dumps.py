"""Dumps as ptdbg wrote them, made from dumps of msprobe: every record of an API becomes a line and a `.npy` file."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dumpscope.readers.tensors import tensor_file

FRAME = re.compile(r"File (.+?), line (\d+), in (\S+?),? \n ?(.*)", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Form:
    """How a generation of ptdbg writes. keywords: arguments given by name are recorded; size: statistics of a tensor"""

    mark: str
    flag: int
    size: int
    keywords: bool


FORMS = {
    "2.3": Form(mark="_", flag=1, size=3, keywords=False),
    "4.0": Form(mark="_", flag=0, size=4, keywords=False),
    "6.0": Form(mark=".", flag=0, size=4, keywords=True),
}


def convert(
    source: Path,
    folder: Path,
    *,
    form: str = "4.0",
    summary: str = "tensor",
    stem: str = "dump",
    stacks: str = "after",
    only: Callable[[str], bool] = lambda _name: True,
) -> Path:
    """Write the API calls of the rank folder `source` into `folder`; answers the .pkl.

    summary: tensor, statistics or md5; stacks: after, before or none
    """
    rule = FORMS[form]
    data = json.loads((source / "dump.json").read_text())["data"]
    frames = _frames(source)
    folder.mkdir(parents=True, exist_ok=True)
    tensors = folder / stem
    if summary == "tensor":
        tensors.mkdir(exist_ok=True)
    lines: list[str] = []
    for node, body in data.items():
        if node.startswith("Module.") or "parameters_grad" in node or not only(node):
            continue
        name = node if rule.mark == "." else underscored(node)
        own = [json.dumps(line) for line in records(rule, name, body, source / "dump_tensor_data", summary, tensors)]
        told = frames.get(node)
        stack = [json.dumps([f"{name}{rule.mark}stack_info", told])] if told and stacks != "none" else []
        lines += [*own, *stack] if stacks == "after" else [*stack, *own]
    path = folder / f"{stem}.pkl"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def convert_dump(source: Path, folder: Path, **how: Any) -> Path:
    """Every step and rank of a dump as `tag/step/rank` (6.0) or, of its first step, `tag/rank`; answers `folder`."""
    steps = sorted(source.glob("step*"))
    for step in steps if how.get("form") == "6.0" else steps[:1]:
        for place, rank in enumerate(sorted(step.iterdir())):
            where = folder / "ptdbg_dump_v4.0" / (step.name if how.get("form") == "6.0" else "") / f"rank{place}"
            convert(rank, where, **how)
    return folder


def underscored(node: str) -> str:
    """`Functional.linear.0.forward` as ptdbg wrote it before 6.0."""
    head, index, direction = node.rsplit(".", 2)
    return f"{head.replace('.', '_', 1)}_{index}_{direction}"


def records(
    rule: Form, name: str, body: dict[str, Any], source: Path, summary: str, tensors: Path
) -> Iterator[list[Any]]:
    """Lines of one call."""
    given = list(body.get("input_args") or body.get("input") or [])
    if rule.keywords:
        given += (body.get("input_kwargs") or {}).values()
    for place, value in enumerate(given):
        yield from _values(rule, f"{name}{rule.mark}input.{place}", value, source, summary, tensors)
    results = body.get("output") or []
    bare = len(results) == 1
    for place, value in enumerate(results):
        item = f"{name}{rule.mark}output{'' if bare else f'.{place}'}"
        yield from _values(rule, item, value, source, summary, tensors)


def _values(rule: Form, item: str, value: Any, source: Path, summary: str, tensors: Path) -> Iterator[list[Any]]:
    if isinstance(value, list):
        for place, part in enumerate(value):
            yield from _values(rule, f"{item}.{place}", part, source, summary, tensors)
    elif isinstance(value, dict) and value.get("type") in ("int", "float", "bool"):
        yield [item, rule.flag, [], f"<class '{value['type']}'>", "[]", [value["value"]] * rule.size]
    elif isinstance(value, dict) and value.get("type") in ("torch.Tensor", "torch.nn.parameter.Parameter"):
        yield _tensor(rule, item, value, source, summary, tensors)


def _tensor(rule: Form, item: str, value: dict[str, Any], source: Path, summary: str, tensors: Path) -> list[Any]:
    array = None
    if "data_name" in value:
        array = np.array(tensor_file.load(source / value["data_name"]).array)
        if value["dtype"] == "torch.bfloat16":
            array = array.astype(np.float32)
    if summary == "tensor" and array is not None:
        np.save(tensors / f"{item}.npy", array)
    if summary == "md5":
        assert array is not None
        return [item, rule.flag, f"{zlib.crc32(array.tobytes()):08x}", value["dtype"], value["shape"], []]
    stats = statistics(value, array)
    return [item, rule.flag, [], value["dtype"], value["shape"], stats[: rule.size]]


def statistics(value: dict[str, Any], array: np.ndarray[Any, Any] | None) -> list[Any]:
    """[max, min, mean, l2norm] as ptdbg has them: bool and empty none, numbers that are no floats no norm."""
    kept = [value["Max"], value["Min"], value["Mean"], value["Norm"]]
    if value["dtype"] == "torch.bool" or 0 in value["shape"]:
        return [[], [], [], "Nan"]
    if "float" not in value["dtype"]:
        mean = float(abs(array).mean()) if array is not None and array.size else kept[2] or 0.0
        return [kept[0], kept[1], mean, "Nan"]
    return kept


def _frames(source: Path) -> dict[str, list[Any]]:
    """Stacks by node, frames as ptdbg writes them."""
    path = source / "stack.json"
    found: dict[str, list[Any]] = {}
    for names, lines in json.loads(path.read_text()).values() if path.is_file() else ():
        frames = []
        for line in lines:
            parts = FRAME.match(line)
            assert parts is not None, line
            frames.append([parts[1], parts[2], parts[3].rstrip(","), parts[4]])
        found.update(dict.fromkeys(names, frames))
    return found
