"""The whole measurement of docs/verdicts.md, "How often the first origin is right", on fresh pairs, with one command:

    PYTHONPATH=tests:capture python bench/origin_accuracy/measure.py OUT [--peer PYTHON]

OUT/one holds pairs with one fault, OUT/healthy healthy pairs (OUT/one has some as well), OUT/two pairs with two faults. It
prints the tables of score.py, one for OUT/one and OUT/healthy together, and, with --peer (the Python of a venv that has
msprobe), msprobe's answers to a sample of OUT/one. One process at a time; after an interruption the same command goes on where
it stood.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
TESTS, CAPTURE = HERE.parents[1] / "tests", HERE.parents[1] / "capture"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--counted", type=int, default=300, help="faulty pairs whose fault rises above what is stored")
    parser.add_argument("--silent", type=int, default=200, help="healthy pairs")
    parser.add_argument("--two", type=int, default=80, help="pairs with two faults")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--peer", default="", help="Python that has msprobe")
    parser.add_argument("--sample", type=int, default=40, help="pairs that msprobe is asked about")
    options = parser.parse_args()
    seed = [] if options.seed is None else ["--seed", str(options.seed)]
    one, healthy, two = (str(options.out / name) for name in ("one", "healthy", "two"))
    make = ["-m", "planted.pairs"]
    _run(sys.executable, [*make, one, "--counted", str(options.counted), "--healthy", "0.2", *seed])
    _run(sys.executable, [*make, healthy, "--silent", str(options.silent), "--healthy", "1", *seed])
    _run(sys.executable, [*make, two, "--pairs", str(options.two), "--healthy", "0", "--faults", "2", *seed])
    _run(sys.executable, [str(HERE / "score.py"), one, healthy])
    _run(sys.executable, [str(HERE / "score.py"), two])
    if options.peer:
        _run(options.peer, [str(HERE / "peer.py"), one, "--most", str(options.sample)])


def _run(python: str, arguments: list[str]) -> None:
    print(f"\n{' '.join(arguments)}\n", flush=True)
    paths = os.pathsep.join([str(TESTS), str(CAPTURE), os.environ.get("PYTHONPATH", "")])
    subprocess.run([python, *arguments], env=os.environ | {"PYTHONPATH": paths}, check=True)


if __name__ == "__main__":
    main()
