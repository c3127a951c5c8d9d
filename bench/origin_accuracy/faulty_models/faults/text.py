"""Faults in language models: attention, norms, position tables, routing, caches."""

from __future__ import annotations

from typing import Any, Final

import torch
from faulty_models.planting import (
    OVERFLOW,
    Fault,
    argument,
    in_bfloat16,
    inplace,
    keyword,
    one_element,
    result,
    row,
    scaled,
)
from torch import Tensor

NAN: Final = float("nan")
MASK: Final = ("input", "computation")
"""A mask that a call computed wrongly: the call is at fault, or, where it is not recorded, what receives it got another input."""


def _put(one: Tensor, place: Any, value: Any) -> Tensor:
    one[place] = value
    return one


def _third_for_second(func: Any, args: Any, kwargs: Any) -> Any:
    """The second pick of each row is the third best; its value stays that of the second."""
    made = func(*args, **kwargs)
    made[1][:, 1] = torch.topk(args[0], 3).indices[:, 2]
    return made


def _values_of_third(func: Any, args: Any, kwargs: Any) -> Any:
    made = func(*args, **kwargs)
    best = torch.topk(args[0], 3)
    made[0][:, 1] = best.values[:, 2]
    made[1][:, 1] = best.indices[:, 2]
    return made


def _as_bfloat16(func: Any, args: Any, kwargs: Any) -> Any:
    return func(*args, **kwargs).bfloat16()


def _truncated(one: Tensor) -> Tensor:
    """As if a conversion to bfloat16 had cut the last bits off instead of rounding: one unit nearer to 0 where it rounded up."""
    return torch.nextafter(one, torch.zeros_like(one))


def _exchanged(one: Tensor, first: int, second: int) -> Tensor:
    order = torch.arange(len(one))
    order[first], order[second] = second, first
    return one[order]


ATTENTION: Final = "attention and masks"
NORM: Final = "norms and activations"
TABLES: Final = "position tables and embeddings"
ROUTING: Final = "routing (MoE)"
CACHE: Final = "generation with a cache"
LOSS: Final = "loss"
DROPOUT: Final = "dropout"
PRODUCTS: Final = "products"
PRECISION: Final = "16 bits, autocast, recomputation"

FAULTS: Final = (
    # -- Llama
    Fault(name="norm_eps", family=NORM, case="llama", op="rsqrt", node="Torch.rsqrt.1.forward",
          change=argument(0, lambda x: x + 1e-2)),
    Fault(name="rope_cos_at_5", family=TABLES, case="llama", op="cos", node="Tensor.cos.0.forward",
          change=row(5, lambda x: x * 0.5)),
    Fault(name="rope_sign", family=TABLES, case="llama", op="neg", node="Tensor.__neg__.2.forward",
          change=result(lambda x: -x)),
    Fault(name="rope_table_bfloat16", family=TABLES, case="llama", op="mul", node="Tensor.__mul__.0.forward",
          change=_as_bfloat16, kinds=("configuration", "computation"), also=("Torch.cat.0.forward",)),
    Fault(name="softmax_bfloat16", family=ATTENTION, case="llama_eager", op="_softmax", node="Functional.softmax.1.forward",
          change=in_bfloat16()),
    Fault(name="one_head_lost", family=ATTENTION, case="llama_eager", op="bmm", node="Torch.matmul.0.forward",
          change=result(lambda x: _put(x, 2, 0.0))),
    Fault(name="causal_mask_peeks", family=ATTENTION, case="llama_eager", op="le", node="Tensor.__le__.0.forward",
          change=result(lambda x: _put(x, (..., 5, 6), True)), kinds=MASK),
    Fault(name="padding_ignored", family=ATTENTION, case="llama_eager", op="bitwise_and", node="Tensor.__and__.1.forward",
          change=lambda func, args, kwargs: func(args[0], torch.ones_like(args[1])), kinds=MASK),
    Fault(name="masked_row_empty", family=ATTENTION, case="llama_half_masked", op="add", node="Tensor.__add__.4.forward",
          change=result(lambda x: _put(x, (0, 1, 4), float("-inf"))), kinds=("overflow", "computation")),
    Fault(name="masked_softmax_nan", family=ATTENTION, case="llama_half_masked", op="_softmax",
          node="Functional.softmax.1.forward", change=result(lambda x: _put(x, (1, 2, 0), NAN)), kinds=OVERFLOW),
    Fault(name="masked_softmax_inf", family=ATTENTION, case="llama_half_masked", op="bmm", node="Torch.matmul.2.forward",
          change=one_element(float("inf"), 5), kinds=OVERFLOW),
    Fault(name="attention_scale", family=ATTENTION, case="llama", op="mul",
          node="Functional.scaled_dot_product_attention.0.forward", change=scaled(1.1)),
    Fault(name="heads_exchanged", family=ATTENTION, case="llama", op="clone", node="Tensor.reshape.0.forward",
          change=result(lambda x: x.flip(1))),
    Fault(name="silu_nan_at_a_token", family=NORM, case="llama", op="silu", node="Functional.silu.1.forward",
          change=row(7, lambda x: torch.full_like(x, NAN)), kinds=OVERFLOW),
    Fault(name="long_sum_cut", family=PRODUCTS, case="llama", op="mm", node="Functional.linear.6.forward",
          change=lambda func, args, kwargs: func(args[0][:, :40], args[1][:40], **kwargs)),
    Fault(name="embedding_gradient", family=TABLES, case="llama", op="embedding_dense_backward",
          node="Functional.embedding.0.backward", change=scaled(1.5)),
    Fault(name="weight_gradient", family=PRODUCTS, case="llama_eager", op="mm", node="Functional.linear.3.backward",
          change=scaled(1.1)),
    Fault(name="input_gradient", family=PRODUCTS, case="llama_eager", op="mm", nth=1, node="Functional.linear.6.backward",
          change=row(3, lambda x: x * 0)),
    Fault(name="norm_gradient", family=NORM, case="llama_eager", op="mul", node="Torch.rsqrt.2.backward", change=scaled(0.9)),
    Fault(name="positions_wrap", family=TABLES, case="llama_long", op="arange", node="Torch.arange.0.forward",
          change=result(lambda x: x % 256), kinds=("input", "computation")),
    Fault(name="residual_lost", family=PRODUCTS, case="llama_long", op="add", node="Tensor.__add__.7.forward",
          change=row(299, lambda x: x * 0)),
    # -- 16 bits, autocast, recomputation
    Fault(name="autocast_product", family=PRECISION, case="llama_autocast", op="mm", node="Functional.linear.5.forward",
          change=scaled(1.05)),
    Fault(name="autocast_weight_truncated", family=PRECISION, case="llama_autocast", op="_to_copy",
          node="Functional.linear.4.forward", change=result(_truncated)),
    Fault(name="autocast_loss_bfloat16", family=PRECISION, case="llama_autocast", op="_log_softmax",
          node="Functional.cross_entropy.0.forward", change=in_bfloat16()),
    Fault(name="autocast_gradient", family=PRECISION, case="llama_autocast", op="silu_backward",
          node="Functional.silu.0.backward", change=scaled(1.5)),
    Fault(name="bfloat16_activation", family=PRECISION, case="llama_bfloat16", op="silu", node="Functional.silu.1.forward",
          change=scaled(1.2)),
    Fault(name="bfloat16_outlier", family=PRECISION, case="llama_bfloat16", op="mm", node="Functional.linear.5.forward",
          change=one_element(4.0, 33)),
    Fault(name="bfloat16_norm_gradient", family=PRECISION, case="llama_bfloat16", op="mul", node="Torch.rsqrt.3.backward",
          change=scaled(2.0)),
    Fault(name="checkpoint_first_pass", family=PRECISION, case="llama_checkpoint", op="_safe_softmax",
          node="Functional.scaled_dot_product_attention.1.forward", change=scaled(1.1)),
    Fault(name="checkpoint_recomputed", family=PRECISION, case="llama_checkpoint", op="silu",
          node="Functional.silu.1500001.forward", change=scaled(1.2)),
    # -- mixtures of experts
    Fault(name="expert_twice", family=ROUTING, case="mixtral", op="topk", node="Torch.topk.1.forward",
          change=result(lambda x: x[:, :1].expand(-1, 2), 1)),
    Fault(name="third_expert", family=ROUTING, case="mixtral", op="topk", node="Torch.topk.0.forward", change=_third_for_second),
    Fault(name="third_expert_with_its_weight", family=ROUTING, case="mixtral", op="topk", node="Torch.topk.0.forward",
          change=_values_of_third),
    Fault(name="sort_exchanges_slots", family=ROUTING, case="mixtral", op="sort", node="Torch.sort.0.forward",
          change=result(lambda x: _exchanged(x, 2, 40), 1)),
    Fault(name="group_border", family=ROUTING, case="mixtral", op="_grouped_mm", node="Functional.grouped_mm.2.forward",
          change=argument(2, lambda x: _put(x.clone(), 0, x[0] + 1))),
    Fault(name="tokens_of_an_expert", family=ROUTING, case="mixtral", op="histc", node="Torch.histc.1.forward",
          change=result(lambda x: x + torch.tensor([1.0, -1.0, 0.0, 0.0]))),
    Fault(name="group_sum", family=ROUTING, case="mixtral", op="cumsum", node="Torch.cumsum.0.forward",
          change=result(lambda x: _put(x, 1, x[1] - 1))),
    Fault(name="router_weights_not_normed", family=ROUTING, case="mixtral", op="div_", node="Tensor.__itruediv__.0.forward",
          change=argument(1, torch.ones_like)),
    Fault(name="expert_weight_gradient", family=ROUTING, case="mixtral", op="_grouped_mm",
          node="Functional.grouped_mm.2.backward", change=scaled(1.2)),
    Fault(name="slots_put_back_wrongly", family=ROUTING, case="mixtral", op="index_put_", node="Tensor.__setitem__.0.forward",
          change=inplace(0, lambda x: _exchanged(x, 1, 30))),
    Fault(name="aux_loss_counts_once", family=ROUTING, case="mixtral", op="scatter_add_",
          node="Tensor.scatter_add_.0.forward", change=inplace(0, lambda x: x.clamp(max=4))),
    Fault(name="experts_exchanged", family=ROUTING, case="qwen2_moe", op="_grouped_mm", node="Functional.grouped_mm.1.forward",
          change=argument(1, lambda x: x.roll(1, 0))),
    Fault(name="shared_expert_gate", family=ROUTING, case="qwen2_moe", op="sigmoid", node="Functional.sigmoid.1.forward",
          change=scaled(0.5)),
    Fault(name="router_gradient", family=ROUTING, case="qwen2_moe", op="scatter", node="Torch.topk.1.backward",
          change=scaled(0.5)),
    Fault(name="expert_takes_last_token_twice", family=ROUTING, case="qwen2_moe", op="_grouped_mm",
          node="Functional.grouped_mm.2.forward", change=result(lambda x: _put(x, 20, x[21]))),
    # -- BERT, T5, GPT2, Whisper
    Fault(name="gelu_tanh", family=NORM, case="bert", op="gelu", node="Functional.gelu.0.forward",
          change=keyword("approximate", lambda _: "tanh")),
    Fault(name="layer_norm_weight_gradient", family=NORM, case="bert", op="native_layer_norm_backward",
          node="Functional.layer_norm.4.backward", change=scaled(1.2, 1)),
    Fault(name="layer_norm_eps", family=NORM, case="bert", op="native_layer_norm", node="Functional.layer_norm.2.forward",
          change=argument(4, lambda _: 1e-2)),
    Fault(name="dropout_mask_reused", family=DROPOUT, case="bert", op="bernoulli_", node="Functional.dropout.3.forward",
          change=inplace(0, lambda x: x.roll(1, 1)), kinds=("configuration", "computation")),
    Fault(name="mask_of_the_other_row", family=ATTENTION, case="bert", op="where",
          node="Functional.scaled_dot_product_attention.0.forward", change=result(lambda x: x.roll(1, 0))),
    Fault(name="token_type", family=TABLES, case="bert", op="embedding", node="Functional.embedding.1.forward",
          change=argument(1, lambda x: 1 - x)),
    Fault(name="position_gradient", family=TABLES, case="bert", op="sum", node="Tensor.__add__.1.backward", change=scaled(0.5)),
    Fault(name="product_bfloat16", family=PRODUCTS, case="t5", op="mm", node="Functional.linear.7.forward",
          change=in_bfloat16()),
    Fault(name="relative_bias_bucket", family=TABLES, case="t5", op="minimum", node="Torch.min.0.forward",
          change=result(lambda x: _put(x, (10, 0), x[10, 0] - 1)), kinds=("computation", "input")),
    Fault(name="gelu_power", family=NORM, case="t5", op="pow", node="Torch.pow.0.forward",
          change=argument(1, lambda _: 3.1), kinds=OVERFLOW),
    Fault(name="head_of_scores_lost", family=ATTENTION, case="gpt2", op="bmm",
          node="Functional.scaled_dot_product_attention.0.forward", change=result(lambda x: _put(x, 1, 0.0))),
    Fault(name="loss_over_one_more", family=LOSS, case="gpt2", op="nll_loss_forward", node="Functional.cross_entropy.0.forward",
          change=scaled(22 / 23)),
    Fault(name="loss_gradient", family=LOSS, case="gpt2", op="_log_softmax_backward_data",
          node="Functional.cross_entropy.0.backward", change=scaled(1.1)),
    Fault(name="bias_lost", family=PRODUCTS, case="gpt2", op="addmm", node="Torch.addmm.3.forward",
          change=lambda func, args, kwargs: func(args[0] + 0.01, *args[1:], **kwargs)),
    Fault(name="tanh_gradient", family=NORM, case="gpt2", op="tanh_backward", node="Torch.tanh.0.backward", change=scaled(0.9)),
    Fault(name="conv1d_last_frame", family=PRODUCTS, case="whisper", op="convolution", node="Functional.conv1d.1.forward",
          change=result(lambda x: _put(x, (..., -1), 0.0))),
    Fault(name="conv1d_weight_gradient", family=PRODUCTS, case="whisper", op="convolution_backward",
          node="Functional.conv1d.0.backward", change=scaled(1.1, 1)),
    Fault(name="cross_attention_nan", family=ATTENTION, case="whisper", op="native_layer_norm",
          node="Functional.layer_norm.6.forward", change=row(2, lambda x: x / 0), kinds=OVERFLOW),
    # -- low-rank adapters
    Fault(name="dropout_not_scaled", family=DROPOUT, case="lora", op="div_", node="Functional.dropout.1.forward",
          change=argument(1, lambda _: 1.0), kinds=("configuration", "computation")),
    Fault(name="lora_product", family=PRODUCTS, case="lora", op="mm", node="Functional.linear.1.forward", change=scaled(1.1)),
    Fault(name="lora_scale", family=PRODUCTS, case="lora", op="mul", node="Tensor.__mul__.6.backward", change=scaled(0.5)),
    Fault(name="lora_gradient", family=PRODUCTS, case="lora", op="mm", node="Functional.linear.6.backward", change=scaled(0.5)),
    # -- generate
    Fault(name="cached_key_lost", family=CACHE, case="generate", op="cat", node="Torch.cat.40.forward",
          change=result(lambda x: _put(x, (..., 3, slice(None)), 0.0))),
    Fault(name="cache_position", family=CACHE, case="generate", op="cos", node="Tensor.cos.3.forward",
          change=scaled(0.9)),
    Fault(name="second_best_token", family=CACHE, case="generate", op="argmax", node="Torch.argmax.2.forward",
          change=lambda func, args, kwargs: torch.topk(args[0], 2).indices[:, 1]),
    Fault(name="decode_attention", family=CACHE, case="generate", op="_scaled_dot_product_flash_attention_for_cpu",
          node="Functional.scaled_dot_product_attention.5.forward", change=scaled(1.1)),
)  # fmt: skip
