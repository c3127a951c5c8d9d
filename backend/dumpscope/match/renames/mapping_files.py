"""msprobe's mapping files: module renames (cell_mapping, layer_mapping) and item pairs (data_mapping)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from dumpscope.domain.options import Options
from dumpscope.errors import UsageError
from dumpscope.match.renames.rename_rules import Rename, parse_renames
from dumpscope.texts import say

HINT: Final = say("match.write_one_target_golden_pair_line")
TOP: Final = "TopLayer"
"""The table of the paths from the root."""
_ROOTS: Final = (TOP, "Cell")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapping:
    """cells: target "path.Class" -> golden; layers: {class or TopLayer: {target sub path: golden sub path}};
    data: target item name -> golden item name; rules: the user's rename rules."""

    cells: dict[str, str] = field(default_factory=dict)
    layers: dict[str, dict[str, str]] = field(default_factory=dict)
    data: dict[str, str] = field(default_factory=dict)
    rules: tuple[Rename, ...] = ()

    @property
    def renames(self) -> bool:
        return bool(self.cells or self.layers or self.rules)


def parse_mapping(options: Options) -> Mapping:
    """Read the mappings in a comparison's options. Raises UsageError that names the option and the position in the file."""
    cells = _flat(options.cell_mapping, "cell_mapping")
    data = _flat(options.data_mapping, "data_mapping")
    layers: dict[str, dict[str, str]] = {}
    for name, body in load_yaml(options.layer_mapping, "layer_mapping").items():
        if body is None:
            continue
        if not isinstance(body, dict):
            raise UsageError(
                say("match.layer_mapping_must_hold_pairs_paths", name=f"{name!r}"),
                hint=say("match.write_target_path_golden_path_lines"),
            )
        table = {str(key): _word(value, "layer_mapping", key) for key, value in body.items()}
        layers.setdefault(TOP if name in _ROOTS else str(name), {}).update(table)
    return Mapping(cells=cells, layers=layers, data=data, rules=parse_renames(options.rename))


class LayerNames:
    """Golden paths of the target's modules, and of the calls in them, by a layer_mapping.

    A path is renamed from the root down: the class of a module decides which table applies below it.
    used: (class, path) of the entries that named something
    """

    def __init__(self, labels: Iterable[str], layers: dict[str, dict[str, str]]) -> None:
        self._layers = layers
        self._class_of = {label.rpartition(".")[0]: label.rpartition(".")[2] for label in labels}
        self.used: set[tuple[str, str]] = set()

    def path(self, path: str) -> str:
        """Path of a module, or of a module and a function that it calls: `layers.0.attention.flash_attention_score`."""
        parts = path.split(".")
        out: list[str] = []
        i = 0
        while i < len(parts):
            here = ".".join(parts[:i])
            owner = self._class_of.get(here, TOP) if here else TOP
            for end in range(len(parts), i, -1):
                old = ".".join(parts[i:end])
                new = self._layers.get(owner, {}).get(old)
                if new is not None:
                    self.used.add((owner, old))
                    out += new.split(".")
                    i = end
                    break
            else:
                out.append(parts[i])
                i += 1
        return ".".join(out)

    def label(self, label: str) -> str:
        """Label of a module."""
        path, _, cls = label.rpartition(".")
        return f"{self.path(path)}.{cls}" if path else label


def rename_labels(labels: Iterable[str], mapping: Mapping, names: LayerNames | None) -> dict[str, str]:
    """Target module labels that the mapping changes -> their golden labels. names: of its layers"""
    renamed: dict[str, str] = {}
    for label in sorted(set(labels), key=len):
        current = label if names is None else names.label(label)
        if current in mapping.cells:
            renamed[label] = mapping.cells[current]
            continue
        for old, new in mapping.cells.items():
            if _contains(current, old):
                current = current.replace(old, new, 1)
        if current != label:
            renamed[label] = current
    return renamed


def _contains(label: str, part: str) -> bool:
    return re.search(rf"(^|\.){re.escape(part)}($|\.)", label) is not None


def _flat(text: str | None, option: str) -> dict[str, str]:
    return {str(key): _word(value, option, key) for key, value in load_yaml(text, option).items()}


def _word(value: object, option: str, key: object) -> str:
    """A name on the golden side. A list or table is refused before it becomes text: a few aliases can expand to gigabytes."""
    if isinstance(value, list | dict | set | tuple):
        raise UsageError(
            say("match.holds", option=option, key=f"{str(key)[:200]!r}", name=type(value).__name__),
            hint=HINT,
        )
    return str(value)


def load_yaml(text: str | None, option: str, hint: str = HINT) -> dict[object, object]:
    """Read a mapping from a user's yaml text. Raises UsageError that names the option and the position."""
    if not text:
        return {}
    from dumpscope.yaml_text import YamlError, read_yaml  # noqa: PLC0415 (few comparisons need it)

    try:
        data = read_yaml(text, option)
    except YamlError as error:
        place = (
            say("match.unknown_place")
            if error.line is None or error.column is None
            else say("match.line_column", line=error.line, column=error.column)
        )
        raise UsageError(say("match.not_valid_yaml", option=option, place=place), hint=hint) from error
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise UsageError(say("match.must_yaml_mapping_not", option=option, name=type(data).__name__), hint=hint)
    return data
