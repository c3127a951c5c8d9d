"""Faults in image models: convolutions, norms with statistics, pooling, detection."""

from __future__ import annotations

from typing import Any, Final

import torch
from faulty_models.planting import Fault, argument, in_bfloat16, one_element, result, scaled
from torch import Tensor

CONVOLUTION: Final = "convolution and pooling"
BATCH_NORM: Final = "batch norm and other norms"
DETECTION: Final = "detection"
DIFFUSION: Final = "diffusion"
TRANSFORMER: Final = "vision transformer"


def _stale(place: int) -> Any:
    """The running statistic is left as it was."""

    def changed(func: Any, args: Any, kwargs: Any) -> Any:
        before = args[place].clone()
        made = func(*args, **kwargs)
        args[place].copy_(before)
        return made

    return changed


def _without_bias(func: Any, args: Any, kwargs: Any) -> Any:
    return func(*args[:2], None, *args[3:], **kwargs)


def _border_lost(one: Tensor) -> Tensor:
    one[..., -1] = 0
    return one


FAULTS: Final = (
    Fault(name="running_var_stale", family=BATCH_NORM, case="resnet", op="native_batch_norm",
          node="Functional.batch_norm.4.forward", change=_stale(4), kinds=("computation", "weight")),
    Fault(name="running_mean_momentum", family=BATCH_NORM, case="resnet", op="native_batch_norm", part=1,
          node="Functional.batch_norm.2.forward", change=argument(6, lambda _: 0.3), kinds=("computation", "weight")),
    Fault(name="batch_statistics_in_evaluation", family=BATCH_NORM, case="resnet", op="native_batch_norm", part=2,
          node="Functional.batch_norm.3.forward", change=argument(5, lambda _: True)),
    Fault(name="batch_norm_gradient", family=BATCH_NORM, case="resnet", op="native_batch_norm_backward",
          node="Functional.batch_norm.3.backward", change=scaled(1.1)),
    Fault(name="batch_norm_weight_gradient", family=BATCH_NORM, case="resnet", op="native_batch_norm_backward",
          node="Functional.batch_norm.1.backward", change=scaled(1.2, 1)),
    Fault(name="max_pool_gradient", family=CONVOLUTION, case="resnet", op="max_pool2d_with_indices_backward",
          node="Functional.max_pool2d.0.backward", change=scaled(0.9)),
    Fault(name="convolution_input_gradient", family=CONVOLUTION, case="resnet", op="convolution_backward",
          node="Functional.conv2d.4.backward", change=scaled(1.1)),
    Fault(name="convolution_weight_gradient", family=CONVOLUTION, case="resnet", op="convolution_backward",
          node="Functional.conv2d.2.backward", change=scaled(1.1, 1)),
    Fault(name="relu_lets_negative_through", family=CONVOLUTION, case="resnet", op="relu_", node="Functional.relu.3.forward",
          change=result(lambda x: x - 0.1 * (x == 0))),
    Fault(name="average_over_one_less", family=CONVOLUTION, case="resnet", op="mean",
          node="Functional.adaptive_avg_pool2d.0.forward", change=scaled(16 / 15)),
    Fault(name="convolution_later_step", family=CONVOLUTION, case="resnet", op="convolution", part=1,
          node="Functional.conv2d.3.forward", change=scaled(1.02)),
    Fault(name="residual_sum_saturates", family=CONVOLUTION, case="resnet", op="convolution", node="Functional.conv2d.2.forward",
          change=result(lambda x: x.clamp(-0.5, 0.5))),
    Fault(name="nms_threshold", family=DETECTION, case="detector", op="nms", node="torchvision.nms.0.forward",
          change=argument(2, lambda _: 0.3)),
    Fault(name="nms_keeps_a_wrong_box", family=DETECTION, case="detector", op="nms", node="torchvision.nms.1.forward",
          change=result(lambda x: torch.cat([x[:4], x[5:6], x[5:]]))),
    Fault(name="roi_align_aligned", family=DETECTION, case="detector", op="roi_align", node="torchvision.roi_align.0.forward",
          change=argument(6, lambda _: True)),
    Fault(name="roi_align_scale", family=DETECTION, case="detector", op="roi_align", node="torchvision.roi_align.0.forward",
          change=argument(2, lambda x: x * 0.5)),
    Fault(name="roi_align_gradient", family=DETECTION, case="detector", op="_roi_align_backward",
          node="torchvision._roi_align_backward.0.forward", change=scaled(0.5),
          also=("torchvision.roi_align.0.backward",)),
    Fault(name="box_size", family=DETECTION, case="detector", op="exp", node="Torch.exp.0.forward", change=scaled(1.05)),
    Fault(name="resize_shifted", family=DETECTION, case="detector", op="upsample_bilinear2d",
          node="Functional.interpolate.0.forward", change=result(lambda x: x.roll(1, -1) * 1.001)),
    Fault(name="smooth_l1_beta", family=DETECTION, case="detector", op="smooth_l1_loss",
          node="Functional.smooth_l1_loss.0.forward", change=argument(3, lambda x: x * 4)),
    Fault(name="proposal_wrong_index", family=DETECTION, case="detector", op="topk", node="Tensor.topk.0.forward",
          change=result(lambda x: torch.cat([x[:, :1], x[:, :1], x[:, 2:]], 1), 1)),
    Fault(name="anchor_overlap", family=DETECTION, case="detector", op="clamp", node="Tensor.clamp.4.forward",
          change=scaled(0.9)),
    Fault(name="gelu_slightly_off", family=BATCH_NORM, case="convnext", op="gelu", node="Functional.gelu.1.forward",
          change=scaled(1.02)),
    Fault(name="drop_path_not_scaled", family=BATCH_NORM, case="convnext", op="div_", node="Tensor.div_.1.forward",
          change=argument(1, lambda _: 1.0)),
    Fault(name="depthwise_border", family=CONVOLUTION, case="convnext", op="convolution", node="Functional.conv2d.3.forward",
          change=result(_border_lost)),
    Fault(name="channels_last_norm", family=BATCH_NORM, case="convnext", op="native_layer_norm",
          node="Functional.layer_norm.3.forward", change=result(lambda x: x.roll(1, -1) * 1.001)),
    Fault(name="convolution_bias_lost", family=DIFFUSION, case="unet", op="convolution", node="Functional.conv2d.5.forward",
          change=_without_bias),
    Fault(name="group_norm_off", family=DIFFUSION, case="unet", op="native_group_norm", node="Functional.group_norm.3.forward",
          change=scaled(1.01)),
    Fault(name="upsampling_shifted", family=DIFFUSION, case="unet", op="upsample_nearest2d",
          node="Functional.interpolate.0.forward", change=result(lambda x: x.roll(1, -1))),
    Fault(name="time_embedding", family=DIFFUSION, case="unet", op="cos", node="Torch.cos.0.forward",
          change=result(torch.sin)),
    Fault(name="cross_attention_token", family=DIFFUSION, case="unet", op="_scaled_dot_product_flash_attention_for_cpu",
          node="Functional.scaled_dot_product_attention.1.forward", change=argument(2, lambda x: x.roll(1, 2) * 0.9)),
    Fault(name="skip_exchanged", family=DIFFUSION, case="unet", op="cat", node="Torch.cat.2.forward",
          change=result(lambda x: x.roll(16, 1))),
    Fault(name="noise_schedule", family=DIFFUSION, case="unet", op="mse_loss_backward", node="Functional.mse_loss.0.backward",
          change=scaled(2.0)),
    Fault(name="positions_rolled", family=TRANSFORMER, case="vit", op="add", node="Tensor.__add__.0.forward",
          change=argument(1, lambda x: x.roll(1, 1))),
    Fault(name="patches_transposed", family=TRANSFORMER, case="vit", op="convolution", node="Functional.conv2d.0.forward",
          change=result(lambda x: x.transpose(2, 3).contiguous())),
    Fault(name="norm_in_bfloat16", family=TRANSFORMER, case="vit", op="native_layer_norm",
          node="Functional.layer_norm.2.forward", change=in_bfloat16()),
    Fault(name="class_token_outlier", family=TRANSFORMER, case="vit", op="addmm", node="Functional.linear.3.forward",
          change=one_element(3.0, 0)),
)  # fmt: skip
