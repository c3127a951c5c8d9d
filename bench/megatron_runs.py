"""Whether Megatron-core trains bit-equal with and without capture: a small GPT on two processes of the CPU.

    pip install --no-deps --target FOLDER megatron-core     (beside the torch that is here; seen with 0.16.1)
    PYTHONPATH=FOLDER python bench/megatron_runs.py [--runs tensor data ...] [--kinds bare L0-statistics mix-tensor ...]

    tensor     tensor parallel 2, every layer checkpointed (tensor_parallel.checkpoint)
    parts      tensor parallel 2, attention checkpointed, the norms made again from freed outputs (CheckpointWithoutOutput)
    data       data parallel 2, DistributedOptimizer, gradients reduced while others are computed, every layer checkpointed
    stages     pipeline parallel 2, DistributedOptimizer, shared embeddings, every layer checkpointed
    plain      tensor parallel 2, nothing checkpointed

Equal must be, on every rank: the loss of every micro-batch, all random states, the weights, the float32 copies and moments of the
optimizer. Dropout is on, under Megatron's own random states. What Megatron asks of CUDA is answered by megatron_on_cpu.py.
Printed beside: the recorded calls, and those marked as made again: none where nothing is checkpointed, some elsewhere. Also
checked: a call is marked exactly if its number says so, the micro-steps of Megatron's schedules are counted, no errors.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

WORLD = 2
STEPS = 3
MICRO_BATCHES = 3
ROOT = Path(__file__).resolve().parents[1]
KINDS = ("bare", "L0-statistics", "L1-statistics", "mix-statistics", "mix-tensor")
LAYERS = {"recompute_granularity": "full", "recompute_method": "uniform", "recompute_num_layers": 1}
RUNS: dict[str, tuple[int, int, dict[str, Any]]] = {  # tensor parallel, pipeline parallel, settings of the model
    "tensor": (2, 1, LAYERS),
    "parts": (2, 1, {"recompute_granularity": "selective", "recompute_modules": ["core_attn", "layernorm"]}),
    "data": (1, 1, LAYERS),
    "stages": (1, 2, LAYERS),
    "plain": (2, 1, {}),
}


def train(run: str, kind: str, folder: str) -> None:
    """One rank. Prints a digest and counts of calls as JSON."""
    warnings.filterwarnings("ignore")
    import hashlib  # noqa: PLC0415

    import megatron_on_cpu  # noqa: PLC0415
    import torch  # noqa: PLC0415
    from megatron.core import parallel_state, tensor_parallel  # noqa: PLC0415
    from megatron.core.distributed import (  # noqa: PLC0415
        DistributedDataParallel,
        DistributedDataParallelConfig,
        finalize_model_grads,
    )
    from megatron.core.models.gpt import GPTModel  # noqa: PLC0415
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec  # noqa: PLC0415
    from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer  # noqa: PLC0415
    from megatron.core.pipeline_parallel import get_forward_backward_func  # noqa: PLC0415
    from megatron.core.transformer.transformer_config import TransformerConfig  # noqa: PLC0415

    torch.set_num_threads(1)
    megatron_on_cpu.install()
    torch.distributed.init_process_group("gloo")
    tensor, pipeline, settings = RUNS[run]
    parallel_state.initialize_model_parallel(tensor, pipeline)
    tensor_parallel.model_parallel_cuda_manual_seed(7)
    config = TransformerConfig(
        num_layers=2, hidden_size=32, num_attention_heads=4, ffn_hidden_size=48, tensor_model_parallel_size=tensor,
        pipeline_model_parallel_size=pipeline, gated_linear_unit=True, activation_func=torch.nn.functional.silu, bf16=True,
        params_dtype=torch.bfloat16, pipeline_dtype=torch.bfloat16, gradient_accumulation_fusion=False,
        bias_dropout_fusion=False, bias_activation_fusion=False, masked_softmax_fusion=False, use_cpu_initialization=True,
        attention_dropout=0.1, hidden_dropout=0.1, **settings,
    )  # fmt: skip
    first, last = parallel_state.is_pipeline_first_stage(), parallel_state.is_pipeline_last_stage()
    inner = GPTModel(
        config, get_gpt_layer_local_spec(), vocab_size=48, max_sequence_length=8, pre_process=first, post_process=last,
        share_embeddings_and_output_weights=run == "stages", position_embedding_type="rope",
    ).bfloat16()  # fmt: skip
    shared = run in ("data", "stages")
    reducing = DistributedDataParallelConfig(
        use_distributed_optimizer=shared, overlap_grad_reduce=run == "data", bucket_size=4000, grad_reduce_in_fp32=True
    )
    model = DistributedDataParallel(config, reducing, inner)
    optimizer = get_megatron_optimizer(
        OptimizerConfig(
            optimizer="adam", lr=1e-2, bf16=True, params_dtype=torch.bfloat16, clip_grad=0.5,
            use_distributed_optimizer=shared,
        ), [model],
    )  # fmt: skip
    config.finalize_model_grads_func = finalize_model_grads
    config.grad_scale_func = optimizer.scale_loss
    config.no_sync_func = model.no_sync if run == "data" else None
    debugger = None
    if kind != "bare":
        from dumpscope_capture import PrecisionDebugger  # noqa: PLC0415

        level, task = kind.split("-")
        debugger = PrecisionDebugger(dump_path=folder, task=task, level=level)
    digest = hashlib.sha256()

    def note(value: torch.Tensor) -> None:
        digest.update(value.detach().contiguous().view(-1).view(torch.uint8).numpy().tobytes())

    given = torch.Generator().manual_seed(parallel_state.get_data_parallel_rank())
    places = torch.arange(8).expand(2, 8)

    def forward(_: Any, held: torch.nn.Module) -> Any:
        tokens = torch.randint(0, 47, (2, 8), generator=given)
        out = held(tokens, places, None, labels=tokens + 1 if last else None)

        def mean(losses: torch.Tensor) -> Any:
            loss = losses.float().mean()
            note(loss)
            return loss, {}

        return out, mean

    for _ in range(STEPS):
        if debugger is not None:
            debugger.start(inner)
        model.zero_grad_buffer()
        optimizer.zero_grad()
        get_forward_backward_func()(
            forward_step_func=forward, data_iterator=iter(range(MICRO_BATCHES)), model=[model],
            num_microbatches=MICRO_BATCHES, seq_length=8, micro_batch_size=2, forward_only=False,
        )  # fmt: skip
        optimizer.step()
        if debugger is not None:
            debugger.stop()
            debugger.step()
    note(torch.get_rng_state())
    for _, state in sorted(tensor_parallel.get_cuda_rng_tracker().get_states().items()):
        note(state)
    for parameter in inner.parameters():
        note(parameter)
    for one in optimizer.chained_optimizers:
        for group in one.optimizer.param_groups:
            for parameter in group["params"]:
                note(parameter)
                for slot in ("exp_avg", "exp_avg_sq"):
                    note(one.optimizer.state[parameter][slot])
    rank = torch.distributed.get_rank()
    print(json.dumps({"rank": rank, "digest": digest.hexdigest()[:16], **count(folder, rank)}), flush=True)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


def count(folder: str, rank: int) -> dict[str, int]:
    """Recorded forward calls of a rank, those that are marked as made again, and errors of the recorder."""
    found = {"calls": 0, "again": 0, "unmarked": 0, "errors": 0, "micro": 0}
    for dump in Path(folder).glob(f"step*/rank{rank}/dump.json"):
        for name, body in json.loads(dump.read_text())["data"].items():
            words = name.split(".")
            number = next((int(word) for word in words if word.isdecimal() and int(word) >= 1_000_000), 0)
            if "forward" in words:
                found["calls"] += 1
                found["again"] += bool(body.get("recomputed"))
                found["unmarked"] += bool(number) != bool(body.get("recomputed"))
    for file in Path(folder).glob(f"step*/rank{rank}/construct.json"):
        found["micro"] += 1 + int(json.loads(file.read_text()).get("megatron_micro_step_number", -1))
    for run in Path(folder).glob(f"step*/rank{rank}/run.json"):
        found["errors"] += len(json.loads(run.read_text()).get("errors") or [])
    return found


def launch(python: str, run: str, kind: str) -> list[dict[str, Any]]:
    """What each rank printed."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    with tempfile.TemporaryDirectory() as folder:
        shared = {
            **os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(WORLD), "OMP_NUM_THREADS": "1",
            "CUDA_DEVICE_MAX_CONNECTIONS": "1",
            "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT / "capture"), os.environ.get("PYTHONPATH")])),
        }  # fmt: skip
        command = [python, __file__, "--train", run, kind, folder]
        ranks = [
            subprocess.Popen(
                command, env={**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)}, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            )
            for rank in range(WORLD)
        ]  # fmt: skip
        found = []
        for rank in ranks:
            out, err = rank.communicate(timeout=600)
            if rank.returncode:
                raise SystemExit(err[-3000:])
            found.append(json.loads(next(line for line in out.splitlines() if line.startswith('{"rank"'))))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", nargs=3, metavar=("RUN", "KIND", "FOLDER"))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--runs", nargs="+", default=list(RUNS), choices=RUNS)
    parser.add_argument("--kinds", nargs="+", default=list(KINDS[1:]), choices=KINDS)
    given = parser.parse_args()
    if given.train:
        train(*given.train)
        return 0
    wrong = 0
    for run in given.runs:
        bare = [one["digest"] for one in launch(given.python, run, "bare")]
        for kind in given.kinds:
            ranks = launch(given.python, run, kind)
            same = [one["digest"] for one in ranks] == bare
            micro = 0 if kind.startswith("L1") else STEPS * MICRO_BATCHES  # they stand beside the modules
            sound = same and all(
                (one["unmarked"], one["errors"], one["micro"], one["again"] > 0) == (0, 0, micro, run != "plain")
                for one in ranks
            )
            wrong += not sound
            counts = ", ".join(f"{one['calls']} calls, {one['again']} made again" for one in ranks)
            print(f"{run:8} {kind:16} {'bit-equal on both ranks' if same else 'DIFFERS'}; {counts}"
                  f"{'' if sound else '; LOOK: ' + json.dumps(ranks)}", flush=True)  # fmt: skip
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
