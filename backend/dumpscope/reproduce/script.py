"""A call document and the runtime's text as one Python file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from dumpscope.reproduce.calls import specs
from dumpscope_format.replay import CallDocument, RegionDocument

_OWN_IMPORT: Final = re.compile(r"^from dumpscope_capture\.replay\.\w+ import (?:\([^)]*\)|[^\n(]*)\n", re.MULTILINE)
_IMPORT: Final = re.compile(
    r"^(?:import [\w., ]+|from [\w.]+ import (?:\([^)]*\)|[^\n(]*))(?:[ ]*#[^\n]*)?\n", re.MULTILINE
)
_DOCSTRING: Final = re.compile(r'\A"""(.*?)"""\n', re.DOTALL)
_WIDTH: Final = 110
_SHOWN: Final = 6
"""Inputs of a region that its head shows."""
_OWNERS: Final = {"Functional": "torch.nn.functional", "Torch": "torch", "Tensor": "torch.Tensor", "VF": "torch._VF",
                  "Aten": "torch.ops.aten", "NPU": "torch_npu"}  # fmt: skip


def script(call: CallDocument, runtime: Sequence[tuple[str, str]], *, origin: str, data: str) -> str:
    """The text of a script.

    runtime: name and text of the modules it carries, in order; origin: where the call is from, one line
    data: folder of the tensor files, absolute or as seen from the folder in which the script is run
    """
    return _joined({**call, "data": data}, runtime, _head(call, origin), "main")


def region_script(call: RegionDocument, runtime: Sequence[tuple[str, str]], *, origin: str, data: str) -> str:
    """The text of a script that runs a region of compiled code; see `script`."""
    return _joined({**call, "data": data}, runtime, _region_head(call, origin), "run_region")


def _joined(document: dict[str, Any], runtime: Sequence[tuple[str, str]], head: str, main: str) -> str:
    parts = [
        "#!/usr/bin/env python3\n",
        f'"""{head}"""\n\n',
        "from __future__ import annotations\n\n",
        _imports([text for _, text in runtime]),
        "\n# The call: what it was given, and what the dump says it gave.\n",
        f"CALL = {literal(document)}\n",
        *(_section(text) for _, text in runtime),
        f'\n\nif __name__ == "__main__":\n    sys.exit({main}(CALL, __file__))\n',
    ]
    return "".join(parts)


def _head(call: CallDocument, origin: str) -> str:
    tensors = specs([call["args"], list(call["kwargs"].values())])
    real = [spec for spec in tensors if "file" in spec]
    lines = [f"{call['name']} alone, from {origin}.", "", f"    {expression(call)}", ""]
    if tensors and not real:
        lines.append(
            "The dump holds statistics only: numbers are MADE UP between the recorded minimum and maximum (--seed)."
        )
    elif len(real) < len(tensors):
        lines.append("Tensors without a file are MADE UP between their recorded minimum and maximum (--seed).")
    lines += [f"Note: {note}." for note in call["notes"]]
    lines += [
        "Runs the call forward and backward on a device, and one precision higher on the CPU as reference. Needs torch, numpy.",
        "",
        "    python THIS.py                    on the CPU",
        "    python THIS.py --device npu       on an accelerator; --dtype, --layout, --deterministic; --help lists all values",
        "    python THIS.py --matrix           every combination, each in a process of its own: what flips the result?",
        "",
        "Exit status: 0 right, 1 wrong (here or in the dump) or broken off, 2 bad usage.",
    ]
    return _quoted(lines)


def _region_head(call: RegionDocument, origin: str) -> str:
    operations = sum(node["op"].startswith("call_") for node in call["graph"]["nodes"])
    return _quoted([
        f"{call['name']} alone, from {origin}.",
        "",
        f"    {expression(call)}: {operations} operations, compiled by {call['backend_name'] or 'an unknown backend'}",
        "",
        *(f"Note: {note}." for note in call["notes"]),
        "Runs the graph of this region of compiled code with the backends eager, aot_eager and inductor and with that of the",
        "recording, forward and backward, and in higher precision as reference; of a backend that is wrong beyond rounding it",
        "looks for the smallest part of the graph that is. Needs torch, numpy.",
        "",
        "    python THIS.py                    all backends, on the CPU",
        "    python THIS.py --backends inductor --device cuda; --prelude FILE brings a backend of your own; --help",
        "",
        "Exit status: 0 right, 1 wrong (here or in the dump) or broken off, 2 bad usage.",
    ])  # fmt: skip


def _quoted(lines: Sequence[str]) -> str:
    """Lines of a docstring."""
    return "\n".join(lines).replace("\\", "\\\\").replace('"""', "'''") + "\n"


def expression(call: CallDocument | RegionDocument) -> str:
    """The call as a person would write it."""
    if "graph" in call:
        more = ", ..." if len(call["args"]) > _SHOWN else ""
        return f"{call['target'] or 'graph'}({', '.join(map(_short, call['args'][:_SHOWN]))}{more})"
    prefix, _, name = call["target"].rpartition(".")
    given = [_short(value) for value in call["args"]] + [
        f"{key}={_short(value)}" for key, value in call["kwargs"].items()
    ]
    return f"{_OWNERS.get(prefix, prefix)}.{name}({', '.join(given)})"


def _short(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_short, value))}]"
    if not isinstance(value, dict):
        return repr(value)
    if "tensor" in value:
        return f"{value['dtype']}{value['shape']}"
    (key, held), *_ = value.items()
    if key == "tuple":
        return f"({', '.join(map(_short, held))}{',' if len(held) == 1 else ''})"
    if key == "dict":
        return f"{{{', '.join(f'{name!r}: {_short(part)}' for name, part in held.items())}}}"
    if key == "slice":
        return ":".join("" if part is None else str(part) for part in held[: 3 if held[2] is not None else 2])
    return "..." if key == "ellipsis" else f"torch.{held}" if key in ("dtype", "memory_format", "layout") else str(held)


def literal(value: Any, indent: int = 0) -> str:
    """A Python literal that breaks lines only where one would be too long; a tensor is a line."""
    flat = repr(value)
    tensor = isinstance(value, dict) and "tensor" in value
    if len(flat) + indent <= _WIDTH or tensor or not isinstance(value, list | dict) or not value:
        return flat
    pad, end = " " * (indent + 4), " " * indent
    if isinstance(value, dict):
        inner = "".join(f"{pad}{key!r}: {literal(part, indent + 4)},\n" for key, part in value.items())
        return f"{{\n{inner}{end}}}"
    return "[\n" + "".join(f"{pad}{literal(part, indent + 4)},\n" for part in value) + f"{end}]"


def _imports(texts: Sequence[str]) -> str:
    """The imports of all modules, each once, the standard library's first."""
    plain: set[str] = set()
    named: dict[str, set[str]] = {}
    for text in texts:
        for found in _IMPORT.findall(_OWN_IMPORT.sub("", text)):
            line = " ".join(found.split("#")[0].split())
            if line.startswith("import "):
                plain.add(line)
            elif not line.startswith("from __future__"):
                module, _, names = line.removeprefix("from ").partition(" import ")
                named.setdefault(module, set()).update(
                    name.strip() for name in names.strip("()").split(",") if name.strip()
                )
    plain.add("import sys")
    lines = sorted(plain) + [
        f"from {module} import {', '.join(sorted(names))}" for module, names in sorted(named.items())
    ]
    outside = [line for line in lines if line.startswith(("import torch", "import numpy"))]
    return "\n".join([*(line for line in lines if line not in outside), "", *outside]) + "\n"


def _section(text: str) -> str:
    """A module without its imports, its docstring as a comment."""
    found = _DOCSTRING.match(text)
    said = found[1].strip() if found else ""
    body = _IMPORT.sub("", _OWN_IMPORT.sub("", text[found.end() :] if found else text)).strip("\n")
    comment = "\n".join(f"# {line}".rstrip() for line in said.splitlines())
    return f"\n\n{'# ' + '-' * 100}\n{comment}\n\n{body}\n"
