"""Compare the dump in this folder with another: python compare_data.py --bench_pkl_path OTHER.pkl

The capture copies this file next to each .pkl file that it writes on an Ascend device. If a folder of .npy files is missing,
statistics are compared. Needs dumpscope, but not torch.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from dumpscope.ptdbg.calls import Compared, compare


def main(arguments: Sequence[str] | None = None) -> Compared:
    here = Path(__file__).resolve().parent
    beside = sorted(here.glob("*.pkl"))
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--npu_pkl_path", type=Path, default=beside[0] if len(beside) == 1 else None)
    parser.add_argument("--bench_pkl_path", type=Path, required=True)
    parser.add_argument("--output_path", type=Path, default=here)
    given = parser.parse_args(arguments)
    if given.npu_pkl_path is None:
        parser.error(f"--npu_pkl_path is needed: {len(beside)} .pkl files lie in {here}")
    sides = {"npu": given.npu_pkl_path, "bench": given.bench_pkl_path}
    named = {f"{side}_pkl_path": str(path) for side, path in sides.items()}
    folders = {f"{side}_dump_data_dir": str(path.with_suffix("")) for side, path in sides.items()}
    if all(Path(folder).is_dir() for folder in folders.values()):
        named.update(folders)
    return compare(named, given.output_path)


if __name__ == "__main__":
    main()
