"""Make backend/dumpscope/demo/dumps.tar.xz from real dumps: `python bench/pack_demo.py DUMPS`. Same input, same bytes.

A tarball because its 440 small tensor files look alike: 0.12 MB, where a zip, which packs each alone, takes 1.1 MB.
"""

from __future__ import annotations

import sys
import tarfile
from pathlib import Path
from typing import Final

ARCHIVE: Final = Path(__file__).resolve().parent.parent / "backend" / "dumpscope" / "demo" / "dumps.tar.xz"
PARTS: Final = ("golden/step0", "target_fault/step0")


def pack(dumps: Path, archive: Path) -> None:
    """Write the demo's two dumps, found below `dumps`, into `archive`, without times or owners."""
    with tarfile.open(archive, "w:xz", preset=9, format=tarfile.USTAR_FORMAT) as tar:
        for part in PARTS:
            for path in sorted((dumps / part).rglob("*")):
                if path.is_file():
                    entry = tarfile.TarInfo(path.relative_to(dumps).as_posix())
                    entry.size = path.stat().st_size
                    entry.mode = 0o644
                    with path.open("rb") as stream:
                        tar.addfile(entry, stream)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    pack(Path(sys.argv[1]), ARCHIVE)
