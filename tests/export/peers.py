"""Tables msprobe made of the bundled dumps, and how to make ours of the same pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from dumpscope.domain.options import Options
from dumpscope.domain.result import Unit
from dumpscope.pipeline.compare.unit import compare_rank
from dumpscope.readers import discover, read_rank


class Peer(NamedTuple):
    target: str
    golden: str
    fuzzy: bool = False
    mapping: str = ""  # kind of mapping file


PEERS: Final = {
    "debug_tensor": Peer("debug_save_tensor", "debug_save_tensor"),
    "dist2_md5": Peer("dist2_md5_fault", "dist2_md5_golden"),
    "dist2_stat": Peer("dist2_stat_fault", "dist2_stat_golden"),
    "dist2_tensor": Peer("dist2_tensor_fault", "dist2_tensor_golden"),
    "fm_extra_op": Peer("target_extra_op", "golden", fuzzy=True),
    "renamed_mix_cm": Peer("target_renamed", "golden", mapping="cell"),
    "renamed_mix_dm": Peer("target_renamed", "golden", mapping="data"),
    "tensor_renamed": Peer("target_renamed", "golden", mapping="layer"),
    "tensor_golden_repeat": Peer("golden", "golden"),
    "xor_fault": Peer("xor_fault", "xor_golden"),
    **{
        f"self_{name}": Peer(name, name)
        for name in ("checkpoint", "conv_L1", "microbatch", "types_L1", "types_L1_md5", "types_L1_stat", "weird_mix")
    },
    **{
        f"tensor_{name}": Peer(f"target_{name}", "golden")
        for name in ("bf16", "extra_op", "fault", "fault_bwd", "fault_gelu_arg", "fault_weight", "nan", "nan_mask")
    },
    **{
        f"stat_{name}": Peer(f"stat_{name}", "stat_golden")
        for name in ("bf16", "fault", "fault_bwd", "fault_weight", "nan")
    },
    **{f"md5_{name}": Peer(f"md5_{name}", "md5_golden") for name in ("bf16", "fault")},
}


def peer_tables(dumps: Path, name: str) -> list[tuple[Path, Unit]]:
    """msprobe's tables of one comparison (first step), each with our unit over the same rank."""
    peer = PEERS[name]
    results = dumps / "peer_results"
    mapping = (results / f"{peer.mapping}_mapping.yaml").read_text() if peer.mapping else None
    options = Options(
        fuzzy=peer.fuzzy,
        cell_mapping=mapping if peer.mapping == "cell" else None,
        data_mapping=mapping if peer.mapping == "data" else None,
        layer_mapping=mapping if peer.mapping == "layer" else None,
    )
    sides = [discover(dumps / folder) for folder in (peer.target, peer.golden)]
    pairs = zip(*([ref for ref in side.ranks if ref.step == side.steps[0]] for side in sides), strict=True)
    found = []
    for target, golden in pairs:
        files = sorted((results / name).glob("*compare_result*.csv"))
        file = files[0] if len(files) == 1 else next(path for path in files if f"rank{target.rank}." in path.name)
        unit = compare_rank(
            read_rank(target), read_rank(golden), step=target.step, rank=target.rank or 0, options=options
        )
        found.append((file, unit))
    return found
