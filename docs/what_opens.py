"""What dumpscope opens, with a sample of each from the test data: `python docs/what_opens.py` writes docs/opens.md.

A test fails while the page differs from what the samples give.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dumpscope.domain.records import Kind, RankDump
from dumpscope.readers import discover, read_rank

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))  # the samples, and what makes dumps of ptdbg

from pipeline.comparing import compare
from readers.ptdbg_dumps import convert

ROOT: Final = Path(__file__).resolve().parents[1]

PAGE: Final = ROOT / "docs" / "opens.md"
DATA: Final = ROOT / "tests" / "data"
ARCHIVES: Final = ("dumps", "recordings")


@dataclass(frozen=True, slots=True)
class Sample:
    """by: the tool; what: is named; path: sample in the archives; fault: the same with a planted fault, "" without one"""

    by: str
    what: str
    path: str
    fault: str = ""


SAMPLES: Final = (
    Sample("dumpscope_capture, statistics", "dump root, step or rank folder", "ours/mix"),
    Sample("msprobe, tensors", "dump root, step or rank folder, `dump.json`", "golden", "target_fault"),
    Sample("msprobe, statistics", "the same", "stat_golden", "stat_fault"),
    Sample("msprobe, md5 or xor", "the same", "md5_golden", "md5_fault"),
    Sample(
        "ptdbg_ascend 2023", "dump path, tag, step or rank folder, `.pkl`", "ptdbg/golden/step0", "ptdbg/fault/step0"
    ),
    Sample("PyTorch DebugMode", "a log, or a folder of one a rank", "debug_mode/golden.log", "debug_mode/fault.log"),
    Sample("torchtitan numerics", "a log, or a folder of one a rank", "torchtitan/golden", "torchtitan/fault"),
    Sample(
        "transformers debug tree, printed", "folder or JSON file", "transformers/printed", "transformers/printed_fault"
    ),
    Sample("transformers debug tree, files", "folder or JSON file", "transformers/saved", "transformers/saved_fault"),
    Sample("SGLang, slime: `key=value` files", "folder", "sglang/golden", "sglang/fault"),
)

HEAD: Final = """# What opens

Made by `python docs/what_opens.py` from the samples of the tests: files that the real tools wrote (those of ptdbg
are made from a dump of msprobe), with a fault planted in one of two runs where there are two. How each is read stands
in [dumps.md](dumps.md). All of them open by `info`, `compare`, the server, an upload, and as .zip or .tar.

| recorded by | name | the sample holds | the planted fault is found at |
|---|---|---|---|
"""
TAIL: Final = """
Files of tensors of your own (`.pt`, `.npy`, `.npz`, `.safetensors` named by layer), dumps of MindSpore in
msprobe's form, and files that an overflow check or the accuracy checker left open as well.

| also | how |
|---|---|
| result tables of msprobe and ptdbg | `dumpscope compare TABLE` ([dumps.md](dumps.md#result-tables-of-other-tools)) |
| checkpoints of every usual form | `dumpscope diff-checkpoints A B` ([checkpoints.md](checkpoints.md)) |
| a result of dumpscope (`result.db`) | `dumpscope serve FILE` |
| anything else | a format of your own ([dumps.md](dumps.md#a-format-of-your-own)) |
"""


def unpack(folder: Path) -> None:
    """Put all samples into a folder."""
    for name in ARCHIVES:
        with tarfile.open(DATA / f"{name}.tar.xz") as archive:
            archive.extractall(folder)
    for name, source in (("golden", "golden"), ("fault", "target_fault")):
        (rank,) = (folder / source / "step0").iterdir()
        convert(rank, folder / "ptdbg" / name / "step0" / "rank0")


def page(folder: Path) -> str:
    """Text of the page. folder: holds the samples"""
    return HEAD + "".join(_row(sample, folder) for sample in SAMPLES) + TAIL


def _row(sample: Sample, folder: Path) -> str:
    golden = folder / sample.path
    found = ""
    if sample.fault:
        answer, _ = compare(folder / sample.fault, golden)
        found = f"`{answer.origins[0].node}`" if answer.origins else "not found"
    return f"| {sample.by} | {sample.what} | {_describe(read_rank(discover(golden).ranks[0]))} | {found} |\n"


def _describe(dump: RankDump) -> str:
    tensors = int((dump.items.kind == Kind.TENSOR).sum())
    parts = [f"{len(dump.nodes)} calls", f"{tensors} tensors by {_values(dump)}"]
    parts += ["call stacks"] if (dump.nodes.stack >= 0).any() else []
    parts += ["module tree"] if not dump.tree.inferred else []
    return ", ".join(parts)


def _values(dump: RankDump) -> str:
    if dump.header.data_dir and (dump.items.data_name >= 0).any():
        return "their files"
    return "a hash" if dump.header.summary != "statistics" else "statistics"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        unpack(Path(place))
        PAGE.write_text(page(Path(place)))
    print(PAGE)
