# /// case
# title = "LoRA blocks under reentrant checkpointing behind frozen embeddings get no gradient"
# category = "uncovered"
# kind = "checkpoint-input-without-grad"
# severity = "warning"
# names = ["checkpoint", "use_reentrant"]
# symptom = "the adapters' grad is None, the head trains"
# symptom_check = "all(b.down.weight.grad is None for b in model.blocks)"
# cause = "no input of the checkpoint requires grad"
# fix = "use_reentrant=False"
# evidence = [
#     { url = "https://github.com/huggingface/transformers/issues/26221", title = "Gradient checkpointing should have no functional impact" },
#     { url = "https://github.com/locuslab/open-unlearning/issues/178", title = "PEFT LoRA transformer layers not trained when gradient_checkpointing=True — enable_input_require_grads() missing" },
# ]
# ///
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Adapter(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.base = nn.Linear(dim, dim).requires_grad_(False)
        self.down, self.up = nn.Linear(dim, 2, bias=False), nn.Linear(2, dim, bias=False)

    def forward(self, x):
        return x + torch.relu(self.base(x)) + self.up(self.down(x))


class LM(nn.Module):
    def __init__(self, vocab=20, dim=8):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim).requires_grad_(False)
        self.blocks = nn.ModuleList(Adapter(dim) for _ in range(2))
        self.head = nn.Linear(dim, vocab)

    def forward(self, ids):
        x = self.embed(ids)  #! also
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=True)  #- here
#+             x = checkpoint(block, x, use_reentrant=False)
        return self.head(x)


torch.manual_seed(5)
model = LM()
opt = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
for _ in range(4):
    ids = torch.randint(0, 20, (4, 7))
    opt.zero_grad()
    nn.functional.cross_entropy(model(ids).flatten(0, 1), ids.flatten()).backward()  #! also
    opt.step()
