# ruff: noqa: PLC0415 - each case imports its own library
"""The cases: each builds a tiny model of a library with random weights, without any download, and runs it.

`needs` names the packages without which a case cannot be made; `ranks` is the number of processes that run it together.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import torch
from model_cases.runs import Run, train
from torch import nn

STEPS: Final = 2
WORDS: Final = 64


@dataclass(frozen=True)
class Case:
    """title: what the table says; count: how calls are counted, "calls", "regions" (compiled code) or "" (not)"""

    title: str
    run: Callable[[Run], None]
    needs: tuple[str, ...]
    ranks: int = 1
    compiled: bool = False


CASES: Final[dict[str, Case]] = {}


def case(title: str, *needs: str, ranks: int = 1, compiled: bool = False) -> Callable[[Callable[[Run], None]], Any]:
    def add(run: Callable[[Run], None]) -> Callable[[Run], None]:
        CASES[run.__name__] = Case(title, run, needs, ranks, compiled)
        return run

    return add


# -- language models ---------------------------------------------------------------------------------------------------

TINY: Final[dict[str, Any]] = {
    "vocab_size": WORDS, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip


def tokens(rows: int = 2, length: int = 12) -> torch.Tensor:
    return torch.randint(3, WORDS, (rows, length))


def text() -> dict[str, torch.Tensor]:
    """Token ids with labels, the second row padded on the left."""
    ids = tokens()
    mask = torch.ones_like(ids)
    mask[1, :3] = 0
    return {"input_ids": ids, "attention_mask": mask, "labels": ids.masked_fill(mask == 0, -100)}


def loss_of(model: nn.Module, batch: dict[str, Any]) -> torch.Tensor:
    loss: torch.Tensor = model(**batch).loss
    return loss


def texts() -> list[dict[str, torch.Tensor]]:
    return [text() for _ in range(STEPS)]


def new_llama(**more: Any) -> nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    return LlamaForCausalLM(LlamaConfig(**{**TINY, "attention_dropout": 0.1, **more}))


@case("Llama, grouped queries, padding, dropout", "transformers")
def llama(run: Run) -> None:
    train(run, new_llama(), texts(), loss_of)


@case("Llama, recomputed layers, autocast bf16", "transformers")
def llama_checkpoint(run: Run) -> None:
    model = new_llama()
    model.gradient_checkpointing_enable()

    def loss(model: nn.Module, batch: dict[str, Any]) -> torch.Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return loss_of(model, batch)

    train(run, model, texts(), loss)


@case("Mixtral", "transformers")
def mixtral(run: Run) -> None:
    from transformers import MixtralConfig, MixtralForCausalLM

    config = MixtralConfig(**TINY, num_local_experts=4, num_experts_per_tok=2, output_router_logits=True)
    train(run, MixtralForCausalLM(config), texts(), loss_of)


@case("Qwen2-MoE", "transformers")
def qwen2_moe(run: Run) -> None:
    from transformers import Qwen2MoeConfig, Qwen2MoeForCausalLM

    config = Qwen2MoeConfig(
        **TINY, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16, shared_expert_intermediate_size=24,
        output_router_logits=True,
    )  # fmt: skip
    train(run, Qwen2MoeForCausalLM(config), texts(), loss_of)


@case("BERT", "transformers")
def bert(run: Run) -> None:
    from transformers import BertConfig, BertForMaskedLM

    config = BertConfig(**{key: value for key, value in TINY.items() if key != "num_key_value_heads"})
    train(run, BertForMaskedLM(config), texts(), loss_of)


@case("T5", "transformers")
def t5(run: Run) -> None:
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(
        vocab_size=WORDS, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, decoder_start_token_id=0,
        feed_forward_proj="gated-gelu",
    )  # fmt: skip
    train(run, T5ForConditionalGeneration(config), texts(), loss_of)


def new_gpt2() -> nn.Module:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=WORDS, n_positions=64, n_embd=32, n_layer=2, n_head=4, bos_token_id=1, eos_token_id=2
    )
    return GPT2LMHeadModel(config)


@case("GPT2", "transformers")
def gpt2(run: Run) -> None:
    train(run, new_gpt2(), texts(), loss_of)


@case("Whisper", "transformers")
def whisper(run: Run) -> None:
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    config = WhisperConfig(
        vocab_size=WORDS, num_mel_bins=8, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, max_source_positions=16, max_target_positions=32,
        dropout=0.1, attention_dropout=0.1, encoder_layerdrop=0.2, mask_time_prob=0.3, mask_time_length=2, pad_token_id=0,
        bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
    )  # fmt: skip
    batches = [{"input_features": torch.randn(2, 8, 32), "labels": tokens()} for _ in range(STEPS)]
    train(run, WhisperForConditionalGeneration(config), batches, loss_of)


@case("generate with a cache: greedy, sampling, beams", "transformers")
def generate(run: Run) -> None:
    model = new_llama().eval()
    ids = tokens()
    for ways in ({"do_sample": False}, {"do_sample": True, "top_k": 8, "temperature": 0.7}, {"num_beams": 3}):
        run.begin(model)
        made = model.generate(ids, max_new_tokens=6, return_dict_in_generate=True, output_scores=True, **ways)
        run.end()
        run.keep("tokens", made.sequences)
        for number, score in enumerate(made.scores):
            run.keep(f"score {number}", score)
        for number, layer in enumerate(made.past_key_values.layers):
            run.keep(f"keys {number}", layer.keys)
            run.keep(f"values {number}", layer.values)


# -- images ------------------------------------------------------------------------------------------------------------


@case("ViT", "transformers")
def vit(run: Run) -> None:
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, image_size=32, patch_size=8,
        hidden_dropout_prob=0.1, num_labels=5,
    )  # fmt: skip
    batches = [{"pixel_values": torch.randn(2, 3, 32, 32), "labels": torch.tensor([1, 3])} for _ in range(STEPS)]
    train(run, ViTForImageClassification(config), batches, loss_of)


def classify(model: nn.Module, batch: torch.Tensor) -> torch.Tensor:
    return nn.functional.cross_entropy(model(batch), torch.arange(len(batch)))


@case("resnet18, SGD", "torchvision")
def resnet18(run: Run) -> None:
    from torchvision.models import resnet18 as new_resnet18

    model = new_resnet18(num_classes=5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    train(run, model, [torch.randn(2, 3, 64, 64) for _ in range(STEPS)], classify, optimizer)


@case("Faster R-CNN", "torchvision")
def detector(run: Run) -> None:
    from torchvision.models.detection import FasterRCNN
    from torchvision.models.detection.faster_rcnn import FastRCNNPredictor, TwoMLPHead
    from torchvision.models.detection.rpn import AnchorGenerator
    from torchvision.ops import MultiScaleRoIAlign

    backbone = nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=4, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2, padding=1)
    )
    backbone.out_channels = 16
    model = FasterRCNN(
        backbone,
        rpn_anchor_generator=AnchorGenerator(sizes=((16, 32),), aspect_ratios=((0.5, 1.0, 2.0),)),
        box_roi_pool=MultiScaleRoIAlign(featmap_names=["0"], output_size=5, sampling_ratio=2),
        box_head=TwoMLPHead(16 * 25, 32), box_predictor=FastRCNNPredictor(32, 3), min_size=64, max_size=96,
        rpn_pre_nms_top_n_train=50, rpn_post_nms_top_n_train=20,
    )  # fmt: skip
    boxes = torch.tensor([[4.0, 4.0, 30.0, 40.0], [20.0, 10.0, 60.0, 50.0]])
    targets = [{"boxes": boxes, "labels": torch.tensor([1, 2])}, {"boxes": boxes[:1] + 2, "labels": torch.tensor([1])}]

    def loss(model: nn.Module, images: list[torch.Tensor]) -> torch.Tensor:
        return sum(model(images, targets).values())

    batches = [[torch.rand(3, 64, 72), torch.rand(3, 80, 64)] for _ in range(STEPS)]
    train(run, model, batches, loss)
    model.eval()
    run.begin(model)
    with torch.no_grad():
        found = model(batches[0])
    run.end()
    for number, one in enumerate(found):
        for key, value in one.items():
            run.keep(f"found {number} {key}", value)


@case("ConvNeXt with drop path", "timm")
def convnext(run: Run) -> None:
    from timm.models.convnext import ConvNeXt

    model = ConvNeXt(depths=(1, 1, 2, 1), dims=(8, 16, 24, 32), num_classes=5, drop_path_rate=0.5, drop_rate=0.1)
    train(run, model, [torch.randn(3, 3, 64, 64) for _ in range(STEPS)], classify)


@case("diffusion UNet with its scheduler", "diffusers")
def unet(run: Run) -> None:
    from diffusers import DDPMScheduler, UNet2DConditionModel

    model = UNet2DConditionModel(
        sample_size=8, block_out_channels=(8, 16), norm_num_groups=4, layers_per_block=1, cross_attention_dim=16,
        attention_head_dim=4, down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
    )  # fmt: skip
    scheduler = DDPMScheduler(num_train_timesteps=100)

    def loss(model: nn.Module, clean: torch.Tensor) -> torch.Tensor:
        noise = torch.randn_like(clean)
        at = torch.randint(0, 100, (len(clean),))
        noisy = scheduler.add_noise(clean, noise, at)
        return nn.functional.mse_loss(model(noisy, at, encoder_hidden_states=torch.randn(2, 5, 16)).sample, noise)

    train(run, model, [torch.randn(2, 4, 8, 8) for _ in range(STEPS)], loss)


# -- training loops ----------------------------------------------------------------------------------------------------


@case("Llama with LoRA", "transformers", "peft")
def lora(run: Run) -> None:
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(r=4, lora_alpha=8, lora_dropout=0.1, target_modules=["q_proj", "v_proj", "down_proj"])
    train(run, get_peft_model(new_llama(), config), texts(), loss_of)


@case("Trainer of transformers, accumulation", "transformers", "accelerate")
def trainer(run: Run) -> None:
    from transformers import Trainer, TrainerCallback, TrainingArguments

    class Parts(TrainerCallback):
        def on_step_begin(self, args: Any, state: Any, control: Any, model: Any = None, **kwargs: Any) -> None:
            run.begin(model)

        def on_step_end(self, args: Any, state: Any, control: Any, model: Any = None, **kwargs: Any) -> None:
            run.end()
            run.keep_state(model)

        def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, model: Any = None, **kwargs: Any) -> None:
            gradients.append([value.grad.clone() for value in model.parameters() if value.grad is not None])

    gradients: list[list[torch.Tensor]] = []
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder, use_cpu=True, report_to=[], save_strategy="no", disable_tqdm=True, max_steps=STEPS,
            per_device_train_batch_size=2, gradient_accumulation_steps=2, logging_steps=1, learning_rate=1e-3,
        )  # fmt: skip
        rows = [{"input_ids": row, "labels": row} for row in tokens(8)]
        training = Trainer(model=new_gpt2(), args=arguments, train_dataset=rows, callbacks=[Parts()])
        training.train()
    for number, values in enumerate(gradients):
        for place, value in enumerate(values):
            run.keep(f"gradient {number} {place}", value)
    run.keep("losses", [(one.get("loss"), one.get("grad_norm")) for one in training.state.log_history])


@case("accelerate, accumulation, clipping", "transformers", "accelerate")
def accelerated(run: Run) -> None:
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    model = new_llama()
    loader = torch.utils.data.DataLoader(
        [{key: value[0] for key, value in text().items()} for _ in range(8)], 2, shuffle=True
    )
    model, optimizer, loader = accelerator.prepare(model, torch.optim.AdamW(model.parameters(), lr=1e-3), loader)
    for batch in loader:
        run.begin(model)
        with accelerator.accumulate(model):
            loss = loss_of(model, batch)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            run.end()
            run.keep("loss", loss)
            run.keep_gradients(model)
            optimizer.zero_grad()
        run.keep_state(model)


@case("lightning Trainer, accumulation, clipping", "transformers", "lightning")
def lightning(run: Run) -> None:
    import lightning as L  # noqa: N812

    class Module(L.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model = new_llama()

        def training_step(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
            return loss_of(self.model, batch)

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.AdamW(self.parameters(), lr=1e-3)

    class Parts(L.Callback):
        def on_train_batch_start(self, trainer: Any, module: Any, batch: Any, batch_idx: int) -> None:
            run.begin(module)

        def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
            run.end()
            run.keep("loss", outputs["loss"])
            run.keep_gradients(module)
            run.keep_state(module)

    loader = torch.utils.data.DataLoader(
        [{key: value[0] for key, value in text().items()} for _ in range(8)], 2, shuffle=True
    )
    with tempfile.TemporaryDirectory() as folder:
        L.Trainer(
            max_steps=STEPS, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
            enable_model_summary=False, accumulate_grad_batches=2, gradient_clip_val=1.0, callbacks=[Parts()],
            default_root_dir=folder,
        ).fit(Module(), loader)  # fmt: skip


# -- several processes, and compiled -----------------------------------------------------------------------------------


@case("Llama, DDP, 2 ranks", "transformers", ranks=2)
def ddp(run: Run) -> None:
    model = new_llama()
    torch.manual_seed(100 + run.rank)
    train(run, nn.parallel.DistributedDataParallel(model), texts(), loss_of)


@case("Llama, FSDP1, 2 ranks", "transformers", ranks=2)
def fsdp1(run: Run) -> None:
    from torch.distributed.fsdp import FullyShardedDataParallel

    model = new_llama()
    torch.manual_seed(100 + run.rank)
    options: dict[str, Any] = {"use_orig_params": True, "device_id": torch.device("cpu")}
    layers = model.model.layers
    for place in range(len(layers)):
        layers[place] = FullyShardedDataParallel(layers[place], **options)
    sharded(run, FullyShardedDataParallel(model, **options))


@case("Llama, FSDP2, 2 ranks", "transformers", ranks=2)
def fsdp2(run: Run) -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    model = new_llama()
    torch.manual_seed(100 + run.rank)
    mesh = init_device_mesh("cpu", (run.size,))
    for layer in model.model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    sharded(run, model)


def sharded(run: Run, model: nn.Module) -> None:
    """`train` with the clipping of FSDP1, if it has its own."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    clip = getattr(model, "clip_grad_norm_", None) or (
        lambda limit: nn.utils.clip_grad_norm_(model.parameters(), limit)
    )
    model.train()
    for batch in texts():
        run.begin(model)
        loss = loss_of(model, batch)
        loss.backward()
        clip(1.0)
        optimizer.step()
        run.end()
        run.keep("loss", loss)
        run.keep_gradients(model)
        run.keep_state(model)
        optimizer.zero_grad()


@case("Llama, torch.compile (inductor)", "transformers", compiled=True)
def compiled(run: Run) -> None:
    model = new_llama()
    train(run, torch.compile(model), texts(), loss_of)
    run.part += 1
    counters = torch._dynamo.utils.counters
    run.keep("compilations", {key: dict(counters[key]) for key in ("stats", "frames")})


def here(name: str) -> str | None:
    """Why a case cannot be made here; None where it can."""
    for needed in CASES[name].needs:
        try:
            __import__(needed)
        except Exception as error:
            return f"{needed}: {type(error).__name__}: {error}"
    return None


os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
