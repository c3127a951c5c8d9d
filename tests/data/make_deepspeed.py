"""Makes deepspeed.tar.xz: checkpoints that DeepSpeed itself writes, of one training on two processes under each stage of ZeRO.

    python tests/data/make_deepspeed.py [--keep FOLDER]

Needs `deepspeed` (made with 0.19.8 and torch 2.13 on the CPU, DS_ACCELERATOR=cpu). The model has two groups of parameters, a
frozen weight and a buffer, none of whose sizes two processes share evenly. `stage2_planted` differs in one element of one float32
copy, in the part of rank 1. `whole.pt`: the float32 weights as DeepSpeed's zero_to_fp32.py puts them together from stage 2.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
WORLD = 2
STAGES = (1, 2, 3)


def train(stage: int, folder: Path) -> None:
    import deepspeed  # noqa: PLC0415
    import torch  # noqa: PLC0415

    torch.set_num_threads(1)
    torch.manual_seed(0)
    deepspeed.init_distributed("gloo")
    model = torch.nn.Sequential(
        torch.nn.Linear(7, 9), torch.nn.LayerNorm(9), torch.nn.Linear(9, 5), torch.nn.Linear(5, 3)
    )
    model.register_buffer("scale", torch.arange(3.0))
    model[3].weight.requires_grad_(False)
    trained = [one for one in model.parameters() if one.requires_grad]
    groups = [
        {"params": [one for one in trained if one.dim() > 1], "weight_decay": 0.1},
        {"params": [one for one in trained if one.dim() < 2], "weight_decay": 0.0},
    ]
    config = {
        "train_micro_batch_size_per_gpu": 4, "zero_allow_untested_optimizer": True, "bf16": {"enabled": True},
        "zero_optimization": {"stage": stage, "reduce_bucket_size": 1000, "allgather_bucket_size": 1000},
    }  # fmt: skip
    engine, *_ = deepspeed.initialize(model=model, optimizer=torch.optim.AdamW(groups, lr=1e-2), config=config)
    given = torch.Generator().manual_seed(torch.distributed.get_rank())
    for _ in range(3):
        loss = engine(torch.rand(4, 7, generator=given).bfloat16()).float().square().mean()
        engine.backward(loss)
        engine.step()
    engine.save_checkpoint(str(folder))
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


def launch(stage: int, folder: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    shared = {
        **os.environ,
        "DS_ACCELERATOR": "cpu",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
        "WORLD_SIZE": str(WORLD),
    }
    command = [sys.executable, __file__, "--train", str(stage), str(folder)]
    ranks = [
        subprocess.Popen(command, env={**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)}) for rank in range(WORLD)
    ]
    assert [rank.wait() for rank in ranks] == [0] * WORLD


def plant(folder: Path) -> None:
    """Change one element of the second group in the part of rank 1."""
    import torch  # noqa: PLC0415

    (file,) = folder.glob("global_step*/*_rank_1_mp_rank_00_optim_states.pt")
    held = torch.load(file, weights_only=False)
    with torch.no_grad():
        held["optimizer_state_dict"]["single_partition_of_fp32_groups"][1][-2] += 0.5
    torch.save(held, file)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", nargs=2, metavar=("STAGE", "FOLDER"))
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    if given.train:
        train(int(given.train[0]), Path(given.train[1]))
        return
    with tempfile.TemporaryDirectory() as scratch:
        root = given.keep or Path(scratch)
        for stage in STAGES:
            launch(stage, root / f"stage{stage}")
            for script in (root / f"stage{stage}").glob("zero_to_*.py"):
                script.unlink()
        shutil.copytree(root / "stage2", root / "stage2_planted")
        plant(root / "stage2_planted")
        import torch  # noqa: PLC0415
        from deepspeed.utils.zero_to_fp32 import get_fp32_state_dict_from_zero_checkpoint  # noqa: PLC0415

        torch.save(get_fp32_state_dict_from_zero_checkpoint(str(root / "stage2")), root / "whole.pt")
        with tarfile.open(HERE / "deepspeed.tar.xz", "w:xz") as archive:
            for path in sorted(root.iterdir()):
                archive.add(path, path.name)


if __name__ == "__main__":
    main()
