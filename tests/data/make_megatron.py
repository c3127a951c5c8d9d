"""Makes megatron.tar.xz: checkpoints that Megatron-LM itself writes, of small GPT models on two or four processes of the CPU.

    python tests/data/make_megatron.py --megatron CLONE [--keep FOLDER] [--only NAME ...]

CLONE: folder of Megatron-LM's repository (made with core_v0.16.1 and torch 2.13); its package for training, which writes the
checkpoints, is not part of megatron-core. It imports `six`, `regex` and `triton`. What it asks of CUDA is answered by
bench/megatron_on_cpu.py. truth.json: {case: {rank's folder: {parameter: {slot: digest}}}}, of what the optimizer held in memory
after the last step: the float32 copy and both moments, put together from the ranges that each rank of the optimizer owns.

The states are rounded to few bits before they are saved, so that the archive is small; no size is a multiple of 64, to which
Megatron fills up the parameters of its buffers.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import socket
import subprocess
import sys
import tarfile
import tempfile
import warnings
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
LEGACY = ["--ckpt-format", "torch"]
SHARED = ["--use-distributed-optimizer"]
CASES: dict[str, tuple[int, int, int, list[str]]] = {  # ranks, tensor parallel, pipeline parallel, options
    "split": (4, 2, 2, [*LEGACY, *SHARED]),
    "buckets": (2, 1, 1, [*LEGACY, *SHARED, "--overlap-grad-reduce", "--ddp-bucket-size", "100"]),
    "mixed": (2, 2, 1, LEGACY),
    "dp_reshardable": (2, 1, 1, ["--ckpt-format", "torch_dist", *SHARED]),
    "dp_split": (4, 2, 1, ["--ckpt-format", "torch_dist", *SHARED]),
    "fully_reshardable": (2, 2, 1, ["--ckpt-format", "torch_dist", *SHARED, "--dist-ckpt-optim-fully-reshardable"]),
    "dp_zero": (2, 1, 1, ["--ckpt-format", "torch_dist", *SHARED]),
    "model_space": (4, 2, 1, ["--ckpt-format", "torch_dist", "--ckpt-fully-parallel-save", *SHARED]),
    "plain_dist": (2, 2, 1, ["--ckpt-format", "torch_dist"]),
}
OLDER = "model_space"
"""Megatron-LM of 2026 cannot write it any more: made with core_v0.15.3, by a second call with --only model_space."""
SHARDINGS = {"dp_zero": "dp_zero_gather_scatter", OLDER: "fully_sharded_model_space"}
"""Older forms, which the options cannot choose any more."""


def train(case: str, megatron: str) -> None:
    """One rank: trains two steps, saves into this folder, and writes what its optimizer holds."""
    warnings.filterwarnings("ignore")
    sys.path[:0] = [megatron, str(HERE.parents[1] / "bench")]
    _, tensor, pipeline, options = CASES[case]
    import megatron_on_cpu  # noqa: PLC0415
    import numpy as np  # noqa: PLC0415
    import torch  # noqa: PLC0415
    import torch.distributed as dist  # noqa: PLC0415
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
    from megatron.training import checkpointing, global_vars  # noqa: PLC0415
    from megatron.training.arguments import parse_args  # noqa: PLC0415

    torch.set_num_threads(1)
    megatron_on_cpu.install()
    if case == OLDER:  # it asks for Transformer Engine although no parameter has 8 bits, and for numpy 1
        from megatron.core.optimizer import distrib_optimizer  # noqa: PLC0415

        distrib_optimizer.quantize_param_shard = lambda *_: None
        np.product = np.prod  # type: ignore[attr-defined]
    dist.init_process_group("gloo")
    sys.argv[1:] = [
        "--tensor-model-parallel-size", str(tensor), "--pipeline-model-parallel-size", str(pipeline), "--bf16",
        "--save", case, "--no-save-rng", *options,
    ]  # fmt: skip
    args = parse_args()
    args.use_dist_ckpt = args.ckpt_format != "torch"
    args.params_dtype = torch.bfloat16
    args.data_parallel_size = dist.get_world_size() // tensor // pipeline
    args.consumed_train_samples = args.skipped_train_samples = 0
    global_vars.set_args(args)
    parallel_state.initialize_model_parallel(tensor, pipeline)
    tensor_parallel.model_parallel_cuda_manual_seed(1)
    torch.manual_seed(1)
    config = TransformerConfig(
        num_layers=2, hidden_size=8, num_attention_heads=2, ffn_hidden_size=12, tensor_model_parallel_size=tensor,
        pipeline_model_parallel_size=pipeline, gated_linear_unit=True, activation_func=torch.nn.functional.silu, bf16=True,
        params_dtype=torch.bfloat16, pipeline_dtype=torch.bfloat16, use_cpu_initialization=True,
        gradient_accumulation_fusion=False, attention_dropout=0.0, hidden_dropout=0.0, bias_dropout_fusion=False,
        bias_activation_fusion=False, masked_softmax_fusion=False, init_method_std=0.3,
        recompute_granularity="full", recompute_method="uniform", recompute_num_layers=1,
    )  # fmt: skip
    first, last = parallel_state.is_pipeline_first_stage(), parallel_state.is_pipeline_last_stage()
    inner = GPTModel(
        config, get_gpt_layer_local_spec(), vocab_size=12, max_sequence_length=4, pre_process=first, post_process=last,
        share_embeddings_and_output_weights=False, position_embedding_type="rope",
    ).bfloat16()  # fmt: skip
    buckets = DistributedDataParallelConfig(
        use_distributed_optimizer=args.use_distributed_optimizer, overlap_grad_reduce=args.overlap_grad_reduce,
        bucket_size=args.ddp_bucket_size, grad_reduce_in_fp32=True,
    )  # fmt: skip
    model = DistributedDataParallel(config, buckets, inner)
    optimizer = get_megatron_optimizer(
        OptimizerConfig(
            optimizer="adam", lr=1e-2, bf16=True, params_dtype=torch.bfloat16, weight_decay=0.1, clip_grad=1.0,
            use_distributed_optimizer=args.use_distributed_optimizer,
        ), [model],
    )  # fmt: skip
    config.finalize_model_grads_func = finalize_model_grads
    config.grad_scale_func = optimizer.scale_loss
    config.no_sync_func = model.no_sync if args.overlap_grad_reduce else None
    tokens = torch.arange(8).view(2, 4) + parallel_state.get_data_parallel_rank()
    places = torch.arange(4).expand(2, 4)

    def forward(_: Any, held: torch.nn.Module) -> Any:
        out = held(tokens, places, None, labels=tokens + 1 if last else None)
        return out, lambda loss: (loss.float().mean(), {})

    for _ in range(2):
        model.zero_grad_buffer()
        optimizer.zero_grad()
        get_forward_backward_func()(
            forward_step_func=forward, data_iterator=iter(range(1)), model=[model], num_microbatches=1, seq_length=4,
            micro_batch_size=2, forward_only=False,
        )  # fmt: skip
        optimizer.step()
    truth = round_states(optimizer, inner, args.use_distributed_optimizer)
    if case in SHARDINGS:
        plain = checkpointing._build_sharded_state_dict_metadata

        def older(*given: Any, **words: Any) -> Any:
            return {**plain(*given, **words), "distrib_optim_sharding_type": SHARDINGS[case]}

        checkpointing._build_sharded_state_dict_metadata = older
    checkpointing.save_checkpoint(2, [model], optimizer, None, 0)
    ranks = parallel_state.get_tensor_model_parallel_rank(), parallel_state.get_pipeline_model_parallel_rank()
    name = "mp_rank_{:02d}".format(*ranks) if pipeline == 1 else "mp_rank_{:02d}_{:03d}".format(*ranks)
    own = f"{case}.{name}.{parallel_state.get_data_parallel_rank()}.json"
    if parallel_state.get_data_parallel_rank() == 0:
        Path(own).write_text(json.dumps(truth))
    dist.barrier()
    dist.destroy_process_group()


def round_states(optimizer: Any, model: Any, shared: bool) -> dict[str, dict[str, str]]:
    """Round what the optimizer holds, copy it to the model, and return digests of it, whole for this part of the tensors."""
    import torch  # noqa: PLC0415
    from megatron.core import parallel_state  # noqa: PLC0415

    def few_bits(tensor: torch.Tensor, bits: int) -> None:
        tensor.copy_((tensor.contiguous().view(torch.int32) & (-1 << (23 - bits))).view(torch.float32))

    truth: dict[str, dict[str, str]] = {}
    (one,) = optimizer.chained_optimizers if hasattr(optimizer, "chained_optimizers") else [optimizer]
    held: dict[str, dict[str, torch.Tensor]] = {}
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            whole = {slot: torch.zeros(parameter.numel()) for slot in ("param", "exp_avg", "exp_avg_sq")}
            if shared:
                if parameter in one.model_param_gbuf_map:
                    states = one._get_main_param_and_optimizer_states(parameter)
                    place = one._get_model_param_range_map(parameter)["param"]
                    for slot, full in whole.items():
                        few_bits(states[slot], 10 if slot == "param" else 4)
                        full[place.start : place.end] = states[slot]
                for full in whole.values():
                    torch.distributed.all_reduce(full, group=parallel_state.get_data_parallel_group())
            else:
                main = parameter.main_param
                states = {"param": main, **one.optimizer.state[main]}
                for slot, full in whole.items():
                    few_bits(states[slot], 10 if slot == "param" else 4)
                    full.copy_(states[slot].reshape(-1))
            held[name] = whole
    one._copy_main_params_to_model_params()
    if shared:
        for group in one.per_model_bucket_groups[0]:
            group.start_param_sync(force_sync=True)
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter.detach().reshape(-1), held[name]["param"].bfloat16()), name
        truth[name] = {
            slot: hashlib.sha256(full.numpy().tobytes()).hexdigest()[:16] for slot, full in held[name].items()
        }
    return truth


def launch(case: str, megatron: Path, root: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    world = CASES[case][0]
    shared = {
        **os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(world), "OMP_NUM_THREADS": "1",
        "CUDA_DEVICE_MAX_CONNECTIONS": "1",
    }  # fmt: skip
    command = [sys.executable, str(Path(__file__).resolve()), "--megatron", str(megatron), "--train", case]
    ranks = [
        subprocess.Popen(command, cwd=root, env={**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)})
        for rank in range(world)
    ]
    assert [rank.wait() for rank in ranks] == [0] * world


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megatron", required=True, type=Path)
    parser.add_argument("--train", choices=CASES)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--only", nargs="+", choices=CASES, default=[case for case in CASES if case != OLDER])
    given = parser.parse_args()
    if given.train:
        train(given.train, str(given.megatron))
        return
    with tempfile.TemporaryDirectory() as scratch:
        root = given.keep or Path(scratch)
        root.mkdir(exist_ok=True)
        told = root / "truth.json"
        truth: dict[str, dict[str, Any]] = json.loads(told.read_text()) if told.exists() else {}
        for case in given.only:
            launch(case, given.megatron.resolve(), root)
            for file in sorted(root.glob(f"{case}.mp_rank_*.json")):
                truth.setdefault(case, {})[file.name.split(".")[1]] = json.loads(file.read_text())
                file.unlink()
            told.write_text(json.dumps(truth, indent=1))
        with tarfile.open(HERE / "megatron.tar.xz", "w:xz") as archive:
            for path in sorted(root.iterdir()):
                archive.add(path, path.name)


if __name__ == "__main__":
    main()
