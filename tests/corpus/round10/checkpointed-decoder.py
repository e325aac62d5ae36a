# /// case
# title = "Reentrant checkpointing of blocks whose input needs no gradient, as the embeddings are frozen"
# category = "graph-break"
# kind = "reentrant-checkpoint-without-grad-input"
# kinds_also_ok = ["checkpoint-cuts-graph", "checkpoint-inputs-without-grad", "parameters-without-gradient"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["checkpoint", "use_reentrant", "wte"]
# symptom = "only the head learns; the blocks have no gradients"
# symptom_check = "all(p.grad is None for p in model.blocks.parameters())"
# cause = "The reentrant form is a Function whose outputs need a gradient only if one of its tensor inputs does; parameters inside do not count."
# fix = "use_reentrant=False (or hidden.requires_grad_())"
# ///
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint


@dataclass
class DecoderConfig:
    vocab_size: int = 48
    hidden_size: int = 32
    num_heads: int = 4
    num_layers: int = 2
    max_positions: int = 20
    gradient_checkpointing: bool = True


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.ln_1 = nn.LayerNorm(config.hidden_size)
        self.qkv = nn.Linear(config.hidden_size, 3 * config.hidden_size)
        self.out = nn.Linear(config.hidden_size, config.hidden_size)
        self.ln_2 = nn.LayerNorm(config.hidden_size)
        self.mlp = nn.Sequential(nn.Linear(config.hidden_size, 64), nn.GELU(), nn.Linear(64, config.hidden_size))
        self.heads = config.num_heads

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.ln_1(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.ln_2(x))


class Decoder(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.wte = nn.Embedding(config.vocab_size, config.hidden_size)
        self.wpe = nn.Embedding(config.max_positions, config.hidden_size)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.num_layers))
        self.lm_head = nn.Sequential(nn.LayerNorm(config.hidden_size), nn.Linear(config.hidden_size, config.vocab_size))
        self.wte.requires_grad_(False)  #! also
        self.wpe.requires_grad_(False)  #! also

    def forward(self, input_ids):
        hidden = self.wte(input_ids) + self.wpe.weight[: input_ids.size(1)]  #! also
        for block in self.blocks:
            if self.config.gradient_checkpointing and self.training:
                hidden = checkpoint(block, hidden, use_reentrant=True)  #- here
#+                 hidden = checkpoint(block, hidden, use_reentrant=False)
            else:
                hidden = block(hidden)
        return self.lm_head(hidden)


def corpus(config, rows):
    starts = torch.randint(config.vocab_size, (rows, 1))
    strides = torch.randint(1, 4, (rows, 1))
    return (starts + strides * torch.arange(config.max_positions + 1)) % config.vocab_size


torch.manual_seed(0)
config = DecoderConfig()
model = Decoder(config).train()
data = corpus(config, 128)
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=3e-3)
for step in range(30):
    rows = data[torch.randint(len(data), (16,))]
    logits = model(rows[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()  #! also
    optimizer.step()
    if step % 10 == 0:
        print(step, loss.item())
