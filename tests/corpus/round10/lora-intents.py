# /// case
# title = "Both matrices of the low-rank update start at zero"
# category = "scale"
# kind = "both-factors-zero"
# kinds_also_ok = ["zero-initialised-product", "vanishing-gradient", "dead-initialisation", "zero-gradients"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["lora_a", "lora_b", "zeros"]
# symptom = "the adapters' gradients are exactly zero in each step; only the classifier learns"
# symptom_check = "all(p.grad.abs().max().item() == 0 and p.abs().max().item() == 0 for n, p in trainable.items() if 'lora' in n)"
# cause = "The gradient of each factor is proportional to the other factor."
# fix = "draw lora_a at random, keep lora_b zero"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class LoRALinear(nn.Module):
    def __init__(self, base, rank=4, alpha=8):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.lora_a = nn.Parameter(torch.zeros(rank, base.in_features))  #- here
#+         self.lora_a = nn.Parameter(torch.randn(rank, base.in_features) / rank)
        self.lora_b = nn.Parameter(torch.zeros(base.out_features, rank))  #! here
        self.scaling = alpha / rank

    def forward(self, x):
        return self.base(x) + self.scaling * (x @ self.lora_a.T @ self.lora_b.T)  #! also


class Encoder(nn.Module):
    def __init__(self, vocab=70, dim=32, classes=7):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(dim, dim) for _ in range(3))
        self.o_proj = nn.Linear(dim, dim)
        self.classifier = nn.Linear(dim, classes)

    def forward(self, ids):
        x = self.embed(ids)
        mixed = F.scaled_dot_product_attention(self.q_proj(x), self.k_proj(x), self.v_proj(x))
        return self.classifier(torch.tanh(x + self.o_proj(mixed)).mean(1))


def inject(model, targets=("q_proj", "v_proj")):
    for param in model.parameters():
        param.requires_grad_(False)
    for name in targets:
        setattr(model, name, LoRALinear(getattr(model, name)))
    model.classifier.requires_grad_(True)
    return model


def utterances(count, length=9):
    intent = torch.randint(0, 7, (count,))
    words = torch.randint(0, 70, (count, length))
    words[:, :3] = intent[:, None] * 10 + torch.randint(0, 10, (count, 3))
    return words, intent


torch.manual_seed(19)
model = inject(Encoder())
trainable = {name: p for name, p in model.named_parameters() if p.requires_grad}
optimizer = torch.optim.AdamW(trainable.values(), lr=1e-2, weight_decay=0.0)
print(sum(p.numel() for p in trainable.values()), "trainable of", sum(p.numel() for p in model.parameters()))
for step in range(60):
    words, intent = utterances(48)
    loss = F.cross_entropy(model(words), intent)
    optimizer.zero_grad()
    loss.backward()  #! also
    optimizer.step()
    if step % 20 == 19:
        print(step, loss.item())
