# /// case
# title = "The two groups by name leave out the gains of the norms and the position embedding"
# category = "optimizer"
# kind = "parameters-in-no-group"
# kinds_also_ok = ["parameters-not-in-optimizer", "incomplete-parameter-groups", "untrained-parameters"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["decay", "no_decay", "wpe", "ln_f"]
# symptom = "wpe and the LayerNorm weights never change and their gradients pile up"
# symptom_check = "sum(len(g['params']) for g in optimizer.param_groups) < len(list(model.parameters()))"
# cause = "A name ending in weight with ln_ matches neither test, nor does wpe."
# fix = "else instead of the second test"
# ///
import math
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class TrainArgs:
    learning_rate: float = 4e-3
    weight_decay: float = 0.05
    warmup_steps: int = 5
    max_steps: int = 40
    batch_size: int = 24


class MiniGPT(nn.Module):
    def __init__(self, vocab=40, dim=32, context=12):
        super().__init__()
        self.wte = nn.Embedding(vocab, dim)
        self.wpe = nn.Parameter(0.02 * torch.randn(context, dim))
        self.ln_attn = nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, 4, batch_first=True)
        self.ln_mlp = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))
        self.ln_f = nn.LayerNorm(dim)
        self.lm_head = nn.Linear(dim, vocab, bias=False)

    def forward(self, ids):
        n = ids.size(1)
        mask = torch.ones(n, n, dtype=torch.bool).triu(1)
        x = self.wte(ids) + self.wpe[:n]
        h = self.ln_attn(x)
        x = x + self.attn(h, h, h, attn_mask=mask, need_weights=False)[0]
        return self.lm_head(self.ln_f(x + self.mlp(self.ln_mlp(x))))


def configure_optimizer(model, args):
    decay, no_decay = [], []
    for name, param in model.named_parameters():
        if name.endswith("weight") and "ln_" not in name:  #! also
            decay.append(param)
        elif name.endswith("bias"):  #- here
#+         else:
            no_decay.append(param)  #! also
    groups = [{"params": decay, "weight_decay": args.weight_decay}, {"params": no_decay, "weight_decay": 0.0}]  #! also
    return torch.optim.AdamW(groups, lr=args.learning_rate, betas=(0.9, 0.95))  #! also


def learning_rate(step, args):
    if step < args.warmup_steps:
        return (step + 1) / args.warmup_steps
    progress = (step - args.warmup_steps) / (args.max_steps - args.warmup_steps)
    return 0.1 + 0.45 * (1 + math.cos(math.pi * progress))


torch.manual_seed(1337)
args = TrainArgs()
model = MiniGPT()
optimizer = configure_optimizer(model, args)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: learning_rate(step, args))
for step in range(args.max_steps):
    tokens = (torch.randint(40, (args.batch_size, 1)) + torch.randint(1, 3, (args.batch_size, 1)) * torch.arange(13)) % 40
    loss = F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    scheduler.step()
print(f"final loss {loss.item():.4f}")
