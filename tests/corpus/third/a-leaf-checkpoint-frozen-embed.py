# /// case
# title = "Reentrant checkpointing behind a frozen embedding gives the LoRA weights no gradient"
# category = "requires-grad"
# kind = "checkpoint-input-without-grad"
# kinds_also_ok = ["parameter-without-gradient", "graph-break-checkpoint"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["use_reentrant", "checkpoint", "lora_a", "lora_b", "tokens"]
# difficulty = "medium"
# symptom = "only the head learns; torch warns that none of the inputs have requires_grad=True"
# symptom_check = "all(p.grad is None for n, p in model.named_parameters() if \"lora_\" in n)"
# warns = "None of the inputs have requires_grad=True"
# cause = "the reentrant variant needs one input that requires grad; the embedding is frozen, so the checkpointed blocks are cut off"
# fix = "use the non-reentrant variant"
# evidence = [{ url = "https://github.com/huggingface/transformers/issues/26221" }, { url = "https://github.com/huggingface/transformers/pull/21598" }, { url = "https://github.com/cloneofsimo/lora/issues/26" }]
# ///
"""LoRA fine-tuning of a small causal LM with activation checkpointing."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint


class LoRALinear(nn.Module):
    def __init__(self, fan_in, fan_out, rank=4, alpha=8):
        super().__init__()
        self.base = nn.Linear(fan_in, fan_out)
        self.lora_a = nn.Parameter(torch.randn(rank, fan_in) / math.sqrt(fan_in))
        self.lora_b = nn.Parameter(torch.zeros(fan_out, rank))
        self.scale = alpha / rank

    def forward(self, x):
        return self.base(x) + self.scale * F.linear(F.linear(x, self.lora_a), self.lora_b)


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv = LoRALinear(dim, 3 * dim)
        self.out = LoRALinear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        q, k, v = self.qkv(self.ln1(x)).chunk(3, dim=-1)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True))
        return x + self.mlp(self.ln2(x))


class TinyLM(nn.Module):
    def __init__(self, vocab=32, dim=24, depth=2, max_len=16, checkpointing=True):
        super().__init__()
        self.tokens = nn.Embedding(vocab, dim)
        self.positions = nn.Embedding(max_len, dim)
        self.blocks = nn.ModuleList(Block(dim) for _ in range(depth))
        self.head = nn.Linear(dim, vocab)
        self.checkpointing = checkpointing

    def forward(self, ids):
        h = self.tokens(ids) + self.positions(torch.arange(ids.size(1)))  #! also
        for block in self.blocks:
            if self.checkpointing and self.training:
                h = checkpoint(block, h, use_reentrant=True)  #- here
#+                 h = checkpoint(block, h, use_reentrant=False)
            else:
                h = block(h)
        return self.head(h)


def freeze_for_lora(model):
    for name, p in model.named_parameters():
        p.requires_grad = "lora_" in name or name.startswith("head.")  #! also


torch.manual_seed(0)
model = TinyLM()
freeze_for_lora(model)
trainable = [p for p in model.parameters() if p.requires_grad]
opt = torch.optim.AdamW(trainable, lr=1e-2)

model.train()
for step in range(8):
    ids = torch.randint(0, 32, (8, 1)) + torch.arange(13) * 3
    ids = ids % 32
    logits = model(ids[:, :-1])
    loss = F.cross_entropy(logits.reshape(-1, 32), ids[:, 1:].reshape(-1))
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"final loss {loss.item():.3f}")
