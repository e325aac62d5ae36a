# /// case
# title = "The schedule counts optimizer steps but is stepped once an epoch"
# category = "optimizer"
# kind = "scheduler-stepped-per-epoch"
# kinds_also_ok = ["scheduler-step-in-wrong-loop", "warmup-never-ends", "learning-rate-too-small"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["scheduler", "total_steps", "warmup_steps"]
# symptom = "the learning rate never leaves the first fifth of the warm-up"
# symptom_check = "max(log.rates) < 0.5 * config.lr"
# cause = "warmup_steps and total_steps are in batches, yet scheduler.step() stands in the epoch loop."
# fix = "call scheduler.step() after every optimizer.step()"
# ///
import math
from dataclasses import dataclass, field

import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class FinetuneConfig:
    vocabulary: int = 32
    dim: int = 32
    context: int = 16
    epochs: int = 5
    batch_size: int = 32
    lr: float = 4e-3
    warmup_steps: int = 24
    min_ratio: float = 0.1


class CausalMixer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embed = nn.Embedding(config.vocabulary, config.dim)
        self.conv = nn.Conv1d(config.dim, config.dim, kernel_size=3)
        self.norm = nn.LayerNorm(config.dim)
        self.up = nn.Linear(config.dim, 2 * config.dim)
        self.down = nn.Linear(2 * config.dim, config.dim)

    def forward(self, ids):
        hidden = self.embed(ids)
        past = F.pad(hidden.transpose(1, 2), (2, 0))
        hidden = hidden + self.conv(past).transpose(1, 2)
        hidden = hidden + self.down(F.silu(self.up(self.norm(hidden))))
        return hidden @ self.embed.weight.t() / self.embed.embedding_dim ** 0.5


def warmup_cosine(optimizer, warmup, total, min_ratio):
    def factor(step):
        if step < warmup:
            return (step + 1) / warmup
        progress = min(1.0, (step - warmup) / max(1, total - warmup))
        return min_ratio + (1.0 - min_ratio) * 0.5 * (1.0 + math.cos(math.pi * progress))

    return torch.optim.lr_scheduler.LambdaLR(optimizer, factor)


@dataclass
class Log:
    losses: list = field(default_factory=list)
    rates: list = field(default_factory=list)


def corpus(config, sequences=960):
    transition = torch.distributions.Dirichlet(torch.full((config.vocabulary,), 0.05)).sample((config.vocabulary,))
    ids = [torch.randint(0, config.vocabulary, (sequences,))]
    for _ in range(config.context):
        ids.append(torch.multinomial(transition[ids[-1]], 1).squeeze(1))
    return TensorDataset(torch.stack(ids, dim=1))


def finetune(model, dataset, config):
    loader = DataLoader(dataset, batch_size=config.batch_size, shuffle=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.lr, betas=(0.9, 0.95))
    total_steps = config.epochs * len(loader)  #! also
    scheduler = warmup_cosine(optimizer, config.warmup_steps, total_steps, config.min_ratio)  #! also
    log = Log()
    for epoch in range(config.epochs):
        for (ids,) in loader:
            logits = model(ids[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            log.losses.append(loss.item())
            log.rates.append(optimizer.param_groups[0]["lr"])
        scheduler.step()  #- here
#+             scheduler.step()
        print(f"epoch {epoch} loss {sum(log.losses[-len(loader):]) / len(loader):.4f}")
    return log


torch.manual_seed(17)
config = FinetuneConfig()
log = finetune(CausalMixer(config), corpus(config), config)
