"""Makes tests/data/parallel.tar.xz: dumps of one model split in many ways, some with a fault on one rank.

    python -m parallel.make_dumps [NAME ...]          (in tests/, with torch; of these alone, the others stay)

Weights and data come from seeds; what names this machine (paths of stacks) is left out, so that a new run gives the same dumps.
"""

from __future__ import annotations

import json
import shutil
import sys
import tarfile
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from parallel.running import run

ARCHIVE: Final = Path(__file__).parents[1] / "data" / "parallel.tar.xz"
KEPT: Final = ("dump.json", "stack.json", "construct.json")
FAULT: Final = {"fault": "scale"}

RUNS: Final[dict[str, dict[str, Any]]] = {
    "whole": {"layout": "whole", "task": "tensor"},
    "whole_L1": {"layout": "whole", "level": "L1"},
    "whole_micro": {"layout": "whole", "micro": 2},
    "tp2": {"layout": "tp", "size": 2, "tp": 2, "task": "tensor"},
    "tp2_L1": {"layout": "tp", "size": 2, "tp": 2, "level": "L1"},
    "tp2_fault": {"layout": "tp", "size": 2, "tp": 2, "task": "tensor", **FAULT, "on": 1, "at": "layers.2.mlp.up"},
    "tp4": {"layout": "tp", "size": 4, "tp": 4},
    "tp4_fault": {"layout": "tp", "size": 4, "tp": 4, **FAULT, "on": 2, "at": "layers.1.attention.qkv"},
    "pp2": {"layout": "pp", "size": 2, "pp": 2, "steps": 2},
    "pp2_micro": {"layout": "pp", "size": 2, "pp": 2, "micro": 2},
    "pp2_fault": {"layout": "pp", "size": 2, "pp": 2, **FAULT, "on": 1, "at": "layers.0.norm2"},
    "vpp2": {"layout": "pp", "size": 2, "pp": 2, "vpp": 2},
    "tp2pp2": {"layout": "tp_pp", "size": 4, "tp": 2, "pp": 2},
    "tp2pp2_fault": {"layout": "tp_pp", "size": 4, "tp": 2, "pp": 2, **FAULT, "on": 3, "at": "layers.1.mlp.up"},
    "dp2": {"layout": "dp", "size": 2, "task": "tensor"},
    "dp2_fault": {"layout": "dp", "size": 2, **FAULT, "on": 1, "at": "layers.1.mlp.down"},
    "dp4_same": {"layout": "dp", "size": 4, "data": "same"},
    "dp4_same_fault": {"layout": "dp", "size": 4, "data": "same", **FAULT, "on": 2, "at": "layers.1.mlp.down"},
    "dp2_own": {"layout": "dp", "size": 2, "data": "own"},
    "whole_uneven": {"layout": "whole", "more": 1},
    "tp2_uneven": {"layout": "tp", "size": 2, "tp": 2, "more": 1},
    "tp2_padded": {"layout": "tp", "size": 2, "tp": 2, "vocabulary": 32, "task": "tensor"},
    "tp2_padded_fault": {"layout": "tp", "size": 2, "tp": 2, "vocabulary": 32, **FAULT, "on": 1, "at": "embedding"},
    "whole_long": {"layout": "whole", "length": 8, "task": "tensor"},
    "cp2": {"layout": "cp", "size": 2, "length": 8, "task": "tensor"},
    "cp2_fault": {"layout": "cp", "size": 2, "length": 8, **FAULT, "on": 1, "at": "layers.1.mlp.down"},
}


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        wanted = {name: options for name, options in RUNS.items() if name in (sys.argv[1:] or RUNS)}
        if len(wanted) < len(RUNS):
            with tarfile.open(ARCHIVE) as tar:
                kept = [member for member in tar.getmembers() if member.name.split("/")[0] not in wanted]
                tar.extractall(place / "packed", members=kept)  # our own archive
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda entry: _make(place, *entry), wanted.items()))
        with tarfile.open(ARCHIVE, "w:xz", preset=9) as tar:
            for path in sorted((place / "packed").rglob("*")):
                tar.add(path, path.relative_to(place / "packed"), recursive=False, filter=_plain)


def _make(place: Path, name: str, options: dict[str, Any]) -> None:
    made = run(place / "runs" / name, **options)
    for rank in sorted(made.glob("step*/*")):
        packed = place / "packed" / name / rank.parent.name / ("rank" if rank.name.startswith("proc") else rank.name)
        packed.mkdir(parents=True)
        for file in KEPT:
            text = (rank / file).read_text(encoding="utf-8")
            text = text.replace(str(Path(__file__).parents[2]) + "/", "")
            if file == "dump.json":
                data = json.loads(text)
                data["dump_data_dir"] = None
                text = json.dumps(data, indent=1)
            (packed / file).write_text(text, encoding="utf-8")
        if (rank / "dump_tensor_data").is_dir() and any((rank / "dump_tensor_data").iterdir()):
            shutil.copytree(rank / "dump_tensor_data", packed / "dump_tensor_data")
    print(name, flush=True)


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    entry.mode = 0o755 if entry.isdir() else 0o644
    return entry


if __name__ == "__main__":
    main()
