"""Faults of training: optimizer, clipping, messages between ranks, and two faults in one run."""

from __future__ import annotations

from typing import Any, Final

import torch
from faulty_models.planting import OVERFLOW, Fault, argument, in_bfloat16, keyword, row, scaled, tensors

OPTIMIZER: Final = "optimizer and clipping"
RANKS: Final = "several ranks"
TWO: Final = "two causes"
WEIGHTS: Final = "weights"
NORM: Final = "norms and activations"
PRODUCTS: Final = "products"
WEIGHT: Final = ("weight",)
COMMUNICATION: Final = ("communication",)


def received(change: Any) -> Any:
    """What a message leaves in the tensors of this rank, once it has arrived."""

    def changed(func: Any, args: Any, kwargs: Any) -> Any:
        before = [one.clone() for one in tensors(args[0])]
        made = func(*args, **kwargs)
        made[-1].wait() if isinstance(made, tuple) else made.wait()
        with torch.no_grad():
            for one, old in zip(tensors(args[0]), before, strict=True):
                one.copy_(change(one.clone(), old))
        return made

    return changed


FAULTS: Final = (
    Fault(name="adam_beta1", family=OPTIMIZER, case="gpt2", op="lerp_", node="Tensor.lerp_.4.forward",
          change=argument(2, lambda x: x * 1.5)),
    Fault(name="adam_beta2", family=OPTIMIZER, case="gpt2", op="addcmul_", node="Tensor.addcmul_.4.forward",
          change=keyword("value", lambda x: x * 1.5)),
    Fault(name="weight_decay", family=OPTIMIZER, case="gpt2", op="mul_", node="Tensor.mul_.8.forward",
          change=argument(1, lambda x: x * 0.9)),
    Fault(name="learning_rate", family=OPTIMIZER, case="gpt2", op="addcdiv_", node="Tensor.addcdiv_.3.forward",
          change=keyword("value", lambda x: x * 1.5)),
    Fault(name="clip_total", family=OPTIMIZER, case="gpt2", op="linalg_vector_norm", node="Torch.vector_norm.0.forward",
          change=scaled(0.5)),
    Fault(name="clip_not_bounded", family=OPTIMIZER, case="gpt2", op="clamp", node="Torch.clamp.0.forward", change=scaled(0.5)),
    Fault(name="adam_second_step", family=OPTIMIZER, case="bert_two_steps", op="sqrt", part=1, node="Tensor.sqrt.4.forward",
          change=scaled(1.3)),
    Fault(name="sgd_momentum", family=OPTIMIZER, case="resnet", op="mul_", part=1, node="Tensor.mul_.0.forward",
          change=argument(1, lambda x: x * 0.5)),
    Fault(name="gradient_not_summed_on_rank_1", family=RANKS, case="summed", op="allreduce_", nth=5, owned=False, rank=1,
          node="Distributed.all_reduce.5.forward", change=received(lambda new, old: old), kinds=COMMUNICATION),
    Fault(name="gradient_of_rank_0_twice", family=RANKS, case="summed", op="allreduce_", nth=8, owned=False,
          node="Distributed.all_reduce.8.forward", change=received(lambda new, old: new * 1.5), kinds=COMMUNICATION),
    Fault(name="average_missing_on_rank_0", family=RANKS, case="summed", op="div_", rank=0, node="Tensor.div_.3.forward",
          change=argument(1, lambda _: 1)),
    Fault(name="layer_of_rank_1", family=RANKS, case="summed", op="addmm", rank=1, node="Torch.addmm.2.forward",
          change=scaled(1.1)),
    Fault(name="broadcast_lost", family=RANKS, case="exchanged", op="broadcast_", owned=False, rank=1,
          node="Distributed.broadcast.0.forward", change=received(lambda new, old: old), kinds=COMMUNICATION),
    Fault(name="gathered_in_other_order", family=RANKS, case="exchanged", op="allgather_", owned=False, rank=0,
          node="Distributed.all_gather.0.forward", change=received(lambda new, old: new.roll(1, 0) * 1.01), kinds=COMMUNICATION),
    Fault(name="sum_wrong_on_rank_0", family=RANKS, case="exchanged", op="allreduce_", owned=False, rank=0,
          node="Distributed.all_reduce.0.forward", change=received(lambda new, old: new + 0.1 * old), kinds=COMMUNICATION),
    Fault(name="sum_wrong_everywhere", family=RANKS, case="exchanged", op="allreduce_", owned=False,
          node="Distributed.all_reduce.0.forward", change=received(lambda new, old: new * 1.1), kinds=COMMUNICATION),
    Fault(name="gelu_of_rank_1", family=RANKS, case="exchanged", op="gelu", rank=1, node="Functional.gelu.0.forward",
          change=scaled(1.1)),
    Fault(name="tanh_nan_of_rank_1", family=RANKS, case="exchanged", op="tanh", rank=1, node="Torch.tanh.0.forward",
          change=row(1, lambda x: x / 0), kinds=OVERFLOW),
    Fault(name="weight_of_a_gate", family=WEIGHTS, case="llama_eager", op="", node="Functional.linear.4.forward",
          weight="model.layers.0.mlp.gate_proj.weight", kinds=WEIGHT),
    Fault(name="weight_of_a_convolution", family=WEIGHTS, case="resnet", op="", node="Functional.conv2d.3.forward",
          weight="layer2.0.conv1.weight", kinds=WEIGHT),
    Fault(name="weight_of_a_norm", family=WEIGHTS, case="bert", op="", node="Functional.layer_norm.3.forward",
          weight="bert.encoder.layer.1.attention.output.LayerNorm.weight", kinds=WEIGHT),
    Fault(name="activation_behind", family=NORM, case="llama_eager", op="silu", node="Functional.silu.1.forward",
          change=scaled(1.5)),
    Fault(name="weight_then_activation", family=TWO, case="llama_eager", op="", node="Functional.linear.4.forward",
          weight="model.layers.0.mlp.gate_proj.weight", kinds=WEIGHT, beside=("activation_behind",)),
    Fault(name="product_behind", family=PRODUCTS, case="llama_eager", op="mm", node="Functional.linear.9.forward",
          change=row(4, lambda x: x * 0)),
    Fault(name="softmax_then_product", family=TWO, case="llama_eager", op="_softmax", node="Functional.softmax.0.forward",
          change=in_bfloat16(), beside=("product_behind",)),
    Fault(name="table_then_nan", family=TWO, case="llama", op="cos", node="Tensor.cos.0.forward",
          change=row(5, lambda x: x * 0.5), beside=("silu_nan_at_a_token",)),
    Fault(name="gelu_behind", family=NORM, case="bert", op="gelu", node="Functional.gelu.1.forward", change=scaled(1.5)),
    Fault(name="eps_then_gelu", family=TWO, case="bert", op="native_layer_norm", node="Functional.layer_norm.1.forward",
          change=argument(4, lambda _: 1e-3), beside=("gelu_behind",)),
    Fault(name="convolution_then_gradient", family=TWO, case="resnet", op="convolution", node="Functional.conv2d.3.forward",
          change=scaled(1.001), beside=("max_pool_gradient",)),
    Fault(name="nan_then_another_layer", family=TWO, case="exchanged", op="gelu", rank=0, node="Functional.gelu.0.forward",
          change=scaled(1.2), beside=("tanh_nan_of_rank_1",)),
    Fault(name="head_behind_nan", family=TWO, case="gpt2", op="tanh", node="Torch.tanh.0.forward",
          change=row(1, lambda x: x / 0), kinds=OVERFLOW, beside=("head_behind_nan_beta",)),
    Fault(name="head_behind_nan_beta", family=OPTIMIZER, case="gpt2", op="mul_", node="Tensor.mul_.12.forward",
          change=argument(1, lambda x: x * 0.9)),
)  # fmt: skip
