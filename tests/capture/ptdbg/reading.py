"""Reads .pkl files back, as lists of fields."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

Fields = list[Any]


def lines(path: Path | str) -> list[Fields]:
    return [json.loads(text) for text in Path(path).read_text(encoding="utf-8").splitlines() if text]


def names(path: Path | str) -> list[str]:
    return [line[0] for line in lines(path)]


def calls(path: Path | str) -> list[str]:
    """Names of calls, each once, in order."""
    heads = [name.partition("ward")[0] + "ward" for name in names(path)]
    return list(dict.fromkeys(heads))


def line(path: Path | str, name: str) -> Fields:
    (found,) = [one for one in lines(path) if one[0] == name]
    return found


def array(path: Path | str, name: str) -> Any:
    path = Path(path)
    return np.load(path.with_suffix("") / f"{name}.npy")
