# /// case
# title = "Resumed optimizer state brings the final learning rate 0"
# category = "optimizer-wiring"
# kind = "learning-rate-zero"
# severity = "warning"
# severity_by_writer = "error"
# names = ["load_state_dict", "lr", "optimizer"]
# difficulty = "hard"
# symptom = "The second stage changes nothing: loss stays constant for a fixed batch; silent."
# symptom_check = "optimizer.param_groups[0]['lr'] < 1e-9 and all(torch.allclose(a, b, atol=1e-7) for a, b in zip(tuned.parameters(), pre_model.parameters()))"
# cause = "The checkpoint was written at the end of a cosine schedule, its param_groups contain lr = 0; load_state_dict overwrites the new learning rate."
# fix = "Set the learning rate again after load_state_dict."
# evidence = [{ url = "https://github.com/NVIDIA/Megatron-LM/issues/1138" }, { url = "https://github.com/IBM/pytorch-seq2seq/pull/95" }]
# ///
"""Two-stage training with a checkpoint between the stages."""
import io
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Stage:
    name: str
    lr: float
    steps: int
    cosine: bool


def build_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 32), nn.SiLU(), nn.Linear(32, 32), nn.SiLU(), nn.Linear(32, 1))


def save(model, optimizer):
    buffer = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, buffer)
    buffer.seek(0)
    return buffer


def sample(n, shift, gen):
    x = torch.randn(n, 5, generator=gen) + shift
    return x, (x[:, :1] * x[:, 1:2]).tanh()


def run_stage(stage, shift, checkpoint=None):
    gen = torch.Generator().manual_seed(len(stage.name))
    model = build_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=stage.lr, weight_decay=0.0)  #! also
    if checkpoint is not None:
        state = torch.load(checkpoint)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])  #! here
#+         for group in optimizer.param_groups:
#+             group["lr"] = stage.lr
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, stage.steps) if stage.cosine else None  #! also
    losses = []
    for _ in range(stage.steps):
        x, y = sample(64, shift, gen)
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  #! also
        if scheduler is not None:
            scheduler.step()
        losses.append(loss.item())
    return model, optimizer, losses


pre_model, pre_opt, pre_losses = run_stage(Stage("pretrain", 5e-3, 30, True), shift=0.0)
tuned, optimizer, losses = run_stage(Stage("tune", 2e-3, 30, False), shift=1.0, checkpoint=save(pre_model, pre_opt))  #! also
print(pre_losses[0], pre_losses[-1], losses[0], losses[-1], optimizer.param_groups[0]["lr"])
