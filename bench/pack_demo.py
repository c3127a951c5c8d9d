"""Make backend/dumpscope/demo/dumps.tar.xz from what the demo training dumps: `python bench/pack_demo.py [FOLDER]`.

FOLDER holds what `python -m dumpscope_capture.demo FOLDER` wrote; without it the training is run here. Only step 0 is packed,
with the machine's own paths, process numbers and host name replaced. A tarball because its hundreds of small tensor files look
alike: a zip, which packs each alone, takes ten times the space.
"""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any, Final

ARCHIVE: Final = Path(__file__).resolve().parent.parent / "backend" / "dumpscope" / "demo" / "dumps.tar.xz"
PARTS: Final = ("golden", "target_fault")
PROCESS: Final = "proc1"


def pack(dumps: Path, archive: Path) -> None:
    """Write step 0 of the two dumps below `dumps` into `archive`, without times, owners or names of this machine."""
    with tarfile.open(archive, "w:xz", preset=9, format=tarfile.USTAR_FORMAT) as tar:
        for part in PARTS:
            (rank,) = (dumps / part / "step0").iterdir()
            for path in sorted(rank.rglob("*")):
                if path.is_file():
                    content = path.read_bytes()
                    if path.suffix == ".json":
                        content = neutral(path.name, content, dumps)
                    elif path.suffix == ".jsonl":
                        content = neutral_lines(content)
                    entry = tarfile.TarInfo(f"{part}/step0/{PROCESS}/{path.relative_to(rank).as_posix()}")
                    entry.size = len(content)
                    entry.mode = 0o644
                    tar.addfile(entry, io.BytesIO(content))


def neutral(name: str, content: bytes, dumps: Path) -> bytes:
    """A JSON file with paths as they would be on anybody's machine."""
    value = _neutral(json.loads(content), str(dumps.resolve()))
    if name == "run.json":
        value |= {"pid": 1, "host": "demo"}
    return json.dumps(value, indent=1).encode()


def neutral_lines(content: bytes) -> bytes:
    """Source files with the names that the neutral call stacks give them."""
    lines = [json.loads(line) for line in content.splitlines()]
    for line in lines:
        line["file"] = re.sub(r"^/\S*/dumpscope_capture/", "/home/user/dumpscope_capture/", line["file"])
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def _neutral(value: Any, dumps: str) -> Any:
    if isinstance(value, str):
        value = value.replace(dumps, "/data/dumps")
        value = re.sub(r"/step0/proc\d+/", f"/step0/{PROCESS}/", value)
        value = re.sub(r"File /\S*/site-packages/", "File /usr/lib/python3/site-packages/", value)
        value = re.sub(r"File /\S*/dumpscope_capture/", "File /home/user/dumpscope_capture/", value)
        return re.sub(r"File /\S*/lib/python3\.\d+/(?!site-packages)", "File /usr/lib/python3/", value)
    if isinstance(value, list):
        return [_neutral(part, dumps) for part in value]
    if isinstance(value, dict):
        return {key: _neutral(part, dumps) for key, part in value.items()}
    return value


def main() -> None:
    if len(sys.argv) == 2:
        pack(Path(sys.argv[1]), ARCHIVE)
    elif len(sys.argv) == 1:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-m", "dumpscope_capture.demo", folder], check=True)
            pack(Path(folder), ARCHIVE)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
