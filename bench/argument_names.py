"""Writes the names and defaults of the arguments of torch's functions, from torch itself:

    PYTHONPATH=capture python bench/argument_names.py backend/dumpscope/match/operators/argument_names.json

`Functional.softmax` stands for a Python function of torch.nn.functional, `sum` for a built-in function, also as a method. A name
or a default on which the overloads of a built-in function disagree is left out.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections import defaultdict
from typing import Any

import torch
import torch.nn.functional

PLAIN = (bool, int, float, str, type(None))


def of_python(function: Any) -> dict[str, Any] | None:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None
    if any(one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD) for one in parameters):
        return None
    return {
        "names": [one.name for one in parameters if one.kind is not one.KEYWORD_ONLY],
        "defaults": {
            one.name: one.default
            for one in parameters
            if one.default is not one.empty and not one.name.startswith("_") and isinstance(one.default, PLAIN)
        },
    }


def of_schemas(schemas: list[Any]) -> dict[str, Any]:
    places: dict[int, set[str]] = defaultdict(set)
    defaults: dict[str, list[Any]] = defaultdict(list)
    for schema in schemas:
        for place, argument in enumerate(schema.arguments):
            if not argument.kwarg_only:
                places[place].add("input" if argument.name == "self" else argument.name)
            known = argument.has_default_value() and isinstance(argument.default_value, PLAIN)
            defaults[argument.name].append(argument.default_value if known else ...)
    names = [next(iter(some)) if len(some) == 1 else None for _, some in sorted(places.items())]
    agreed = {
        name: values[0]
        for name, values in defaults.items()
        if values[0] is not ... and all(type(one) is type(values[0]) and one == values[0] for one in values)
    }
    return {"names": names, "defaults": agreed}


def main() -> None:
    table: dict[str, dict[str, Any]] = {}
    for name, function in sorted(vars(torch.nn.functional).items()):
        if inspect.isfunction(function) and not name.startswith("_"):
            found = of_python(function)
            if found is not None:
                table[f"Functional.{name}"] = found
    overloads: dict[str, list[Any]] = defaultdict(list)
    for schema in torch._C._jit_get_all_schemas():
        space, _, name = schema.name.partition("::")
        if space == "aten" and "out" not in schema.overload_name.split("_"):
            overloads[name].append(schema)
    for name, schemas in sorted(overloads.items()):
        if hasattr(torch, name) or hasattr(torch.Tensor, name) or hasattr(torch.nn.functional, name):
            table[name] = of_schemas(schemas)
    table = {name: entry for name, entry in sorted(table.items()) if entry["defaults"] or len(entry["names"]) > 1}
    lines = [f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in table.items()]
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
