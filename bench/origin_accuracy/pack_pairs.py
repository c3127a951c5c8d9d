"""Packs statistics pairs that are answered rightly into the test data: what was right must stay right.

    python bench/origin_accuracy/pack_pairs.py OUT [OUT ...] --to tests/data/origin_pairs.tar.xz [--most 80]
    python bench/origin_accuracy/pack_pairs.py OUT --ids 43 57 --to tests/data/origin_pairs.tar.xz

Every cause, model, dtype, level and noise that OUT holds is taken in turn until --most pairs are packed. --ids adds these
pairs to those that the archive holds: pairs of which a fault in the analysis was learnt.
"""

from __future__ import annotations

import argparse
import json
import re
import tarfile
from collections import defaultdict
from io import BytesIO
from pathlib import Path
from typing import Any

from planted.scoring import scored


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", nargs="+", type=Path)
    parser.add_argument("--to", required=True, type=Path)
    parser.add_argument("--most", type=int, default=80)
    parser.add_argument("--ids", type=int, nargs="*", default=[])
    options = parser.parse_args()
    if options.ids:
        (root,) = options.out
        entries = [json.loads(line) for line in (root / "pairs.jsonl").read_text().splitlines()]
        some = [(root, entry, scored(root, entry).truth) for entry in entries if entry["id"] in options.ids]
        pack(some, options.to, kept(options.to))
        return
    kinds: dict[tuple[Any, ...], list[tuple[Path, dict[str, Any], tuple[str, ...]]]] = defaultdict(list)
    for root in options.out:
        for line in (root / "pairs.jsonl").read_text().splitlines():
            entry = json.loads(line)
            if entry["task"] != "statistics" or entry["steps"] != 1 or not (root / entry["target"]).is_dir():
                continue
            row = scored(root, entry)
            if row.outcome == "right" and not row.false and row.reach == "clear":
                key = (entry["cause"], entry["model"], entry["dtype"], entry["level"], bool(entry["noise"]))
                kinds[key].append((root, entry, row.truth))
    chosen = []
    while len(chosen) < options.most and any(kinds.values()):
        for key in sorted(kinds, key=str):
            if kinds[key] and len(chosen) < options.most:
                chosen.append(kinds[key].pop(0))
    pack(chosen, options.to)
    print(f"{len(chosen)} pairs, {options.to.stat().st_size // 1024} kB")


def kept(path: Path) -> dict[str, str]:
    """What an archive holds, by name."""
    with tarfile.open(path) as tar:
        return {one.name: tar.extractfile(one).read().decode() for one in tar.getmembers()}  # type: ignore[union-attr]


def pack(
    chosen: list[tuple[Path, dict[str, Any], tuple[str, ...]]], path: Path, known: dict[str, str] | None = None
) -> None:
    """Write an archive. known: what it held before"""
    known = known or {}
    truth = json.loads(known.pop("truth.json", "[]"))
    with tarfile.open(path, "w:xz") as tar:
        packed: set[str] = set()
        for name, text in known.items():
            add(tar, name, text)
        for root, entry, names in chosen:
            sides = {}
            for side in ("target", "golden"):
                name = f"{root.name}/{entry[side]}"
                sides[side] = name
                if name not in packed:
                    packed.add(name)
                    for file in sorted((root / entry[side] / "dump").rglob("*.json")):
                        add(tar, f"{name}/{file.relative_to(root / entry[side] / 'dump')}", anonymous(file.read_text()))
            truth.append({**sides, "cause": entry["cause"], "noisy": bool(entry["noise"]), "dtype": entry["dtype"],
                          "level": entry["level"], "model": entry["model"], "nodes": names})  # fmt: skip
        add(tar, "truth.json", json.dumps(truth, indent=1))


def add(tar: tarfile.TarFile, name: str, text: str) -> None:
    member = tarfile.TarInfo(name)
    data = text.encode()
    member.size = len(data)
    tar.addfile(member, BytesIO(data))


def anonymous(text: str) -> str:
    """Without the folders of the machine that made the dumps."""
    text = re.sub(r"File /[^,]*?/(python[0-9.]+|planted)/", r"File /home/user/\1/", text)
    return re.sub(r'"dump_data_dir": "[^"]*"', '"dump_data_dir": null', text)


if __name__ == "__main__":
    main()
