# /// case
# title = "A reentrant checkpoint of frozen inputs cuts the adapters off"
# category = "flags"
# kind = "checkpoint-without-input-grad"
# kinds_also_ok = ["parameter-without-gradient", "reentrant-checkpoint"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["checkpoint", "use_reentrant", "embed"]
# symptom = "no low-rank factor of the checkpointed blocks has a gradient; only the head trains"
# symptom_check = "all(b.lora_b.grad is None for b in model.blocks)"
# cause = "no input of the checkpointed block requires a gradient"
# fix = "use_reentrant=False, or let the embeddings' output require gradients"
# evidence = [
#     { url = "https://github.com/locuslab/open-unlearning/issues/178", title = "PEFT LoRA transformer layers not trained when gradient_checkpointing=True — enable_input_require_grads() missing" },
#     { url = "https://github.com/cloneofsimo/lora/issues/26", title = "Gradient checkpointing blocks LoRA weight updates" },
# ]
# ///
import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint


class LoRABlock(nn.Module):
    def __init__(self, dim, rank=4):
        super().__init__()
        self.base = nn.Linear(dim, dim)
        self.norm = nn.LayerNorm(dim)
        self.lora_a = nn.Parameter(torch.randn(rank, dim) * 0.1)
        self.lora_b = nn.Parameter(torch.zeros(dim, rank))
        for module in (self.base, self.norm):
            module.requires_grad_(False)

    def forward(self, x):
        h = self.norm(x)
        return x + torch.tanh(self.base(h) + h @ self.lora_a.T @ self.lora_b.T)


class TinyLM(nn.Module):
    def __init__(self, vocab=30, dim=16, depth=2):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim).requires_grad_(False)
        self.blocks = nn.ModuleList(LoRABlock(dim) for _ in range(depth))
        self.score = nn.Linear(dim, 2)
        self.gradient_checkpointing = False

    def forward(self, ids):
        h = self.embed(ids)  #! also
        for block in self.blocks:
            if self.gradient_checkpointing and self.training:
                h = checkpoint(block, h, use_reentrant=True)  #- here
#+                 h = checkpoint(block, h, use_reentrant=False)
            else:
                h = block(h)
        return self.score(h.mean(1))


torch.manual_seed(1)
model = TinyLM()
model.gradient_checkpointing = True  #! also
trainable = [p for p in model.parameters() if p.requires_grad]
opt = torch.optim.AdamW(trainable, lr=1e-3)
ids, label = torch.randint(0, 30, (12, 9)), torch.randint(0, 2, (12,))
for _ in range(4):
    loss = nn.functional.cross_entropy(model(ids), label)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
