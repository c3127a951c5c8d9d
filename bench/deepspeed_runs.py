"""Whether DeepSpeed trains bit-equal with and without capture: ZeRO 1, 2 and 3 on two processes of the CPU.

    pip install --no-build-isolation deepspeed       (DS_BUILD_OPS=0; into an environment of its own, with the same torch)
    python bench/deepspeed_runs.py [--python OTHER/bin/python] [--stages 1 2 3] [--kinds bare L0-statistics mix-tensor ...]

Equal must be: the loss of every step, the random state, and the weights at the end, of every rank. The buckets are small:
DeepSpeed's default of 5e8 elements is one tensor that a capture measures too, which takes seconds a step on a CPU.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

WORLD = 2
STEPS = 4
ROOT = Path(__file__).resolve().parents[1]
KINDS = ("bare", "L0-statistics", "L1-statistics", "mix-statistics", "mix-tensor")


def train(stage: int, kind: str, folder: str) -> None:
    """One rank. Prints a digest as JSON."""
    import hashlib  # noqa: PLC0415

    import deepspeed  # noqa: PLC0415
    import torch  # noqa: PLC0415

    torch.set_num_threads(1)
    torch.manual_seed(0)
    deepspeed.init_distributed("gloo")
    rank = torch.distributed.get_rank()
    model = torch.nn.Sequential(
        torch.nn.Linear(16, 33), torch.nn.LayerNorm(33), torch.nn.GELU(), torch.nn.Dropout(0.1), torch.nn.Linear(33, 5)
    )
    config = {
        "train_micro_batch_size_per_gpu": 4, "zero_allow_untested_optimizer": True, "bf16": {"enabled": True},
        "gradient_clipping": 0.5,
        "zero_optimization": {"stage": stage, "reduce_bucket_size": 1000, "allgather_bucket_size": 1000},
    }  # fmt: skip
    engine, *_ = deepspeed.initialize(
        model=model, optimizer=torch.optim.AdamW(model.parameters(), lr=1e-2), config=config
    )
    debugger = None
    if kind != "bare":
        from dumpscope_capture import PrecisionDebugger  # noqa: PLC0415

        level, task = kind.split("-")
        debugger = PrecisionDebugger(dump_path=folder, task=task, level=level)
    given = torch.Generator().manual_seed(100 + rank)
    digest = hashlib.sha256()
    for _ in range(STEPS):
        if debugger is not None:
            debugger.start(model)
        loss = engine(torch.rand(4, 16, generator=given).bfloat16()).float().square().mean()
        engine.backward(loss)
        engine.step()
        if debugger is not None:
            debugger.stop()
            debugger.step()
        digest.update(loss.detach().numpy().tobytes())
    digest.update(torch.get_rng_state().numpy().tobytes())
    with deepspeed.zero.GatheredParameters(list(model.parameters()), enabled=stage == 3):
        for parameter in model.parameters():
            digest.update(parameter.detach().float().numpy().tobytes())
    print(json.dumps({"rank": rank, "digest": digest.hexdigest()[:16]}), flush=True)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


def launch(python: str, stage: int, kind: str) -> list[str]:
    """Digests of the ranks."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    with tempfile.TemporaryDirectory() as folder:
        shared = {
            **os.environ, "DS_ACCELERATOR": "cpu", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(WORLD),
            "LOCAL_SIZE": str(WORLD), "OMP_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT / "capture"), os.environ.get("PYTHONPATH")])),
        }  # fmt: skip
        command = [python, __file__, "--train", str(stage), kind, folder]
        ranks = [
            subprocess.Popen(
                command, env={**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)}, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            )
            for rank in range(WORLD)
        ]  # fmt: skip
        digests = []
        for rank in ranks:
            out, err = rank.communicate(timeout=600)
            if rank.returncode:
                raise SystemExit(err[-3000:])
            digests.append(json.loads(next(line for line in out.splitlines() if line.startswith('{"rank"')))["digest"])
    return digests


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", nargs=3, metavar=("STAGE", "KIND", "FOLDER"))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--stages", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--kinds", nargs="+", default=list(KINDS[1:]), choices=KINDS)
    given = parser.parse_args()
    if given.train:
        train(int(given.train[0]), *given.train[1:])
        return 0
    wrong = 0
    for stage in given.stages:
        bare = launch(given.python, stage, "bare")
        for kind in given.kinds:
            same = launch(given.python, stage, kind) == bare
            wrong += not same
            print(f"ZeRO {stage}  {kind:16} {'bit-equal on both ranks' if same else 'DIFFERS'}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
