# /// case
# title = "Load-balancing loss of the mixture of experts is a constant"
# category = "loss-wiring"
# kind = "loss-term-without-gradient"
# severity = "warning"
# severity_by_writer = "error"
# names = ["aux", "load", "balance_loss", "router"]
# difficulty = "hard"
# symptom = "The auxiliary loss is added and logged, but routing stays unbalanced: it has no gradient."
# symptom_check = "not aux.requires_grad"
# cause = "balance_loss uses only the hard assignment counts (argmax -> one_hot), which are constants for autograd."
# fix = "Multiply the load fractions with the mean router probabilities (Switch loss)."
# evidence = [{ url = "https://github.com/CASIA-LMC-Lab/AnomalyMoE/issues/1" }, { url = "https://github.com/paiml/aprender/pull/2162" }]
# ///
"""Switch-style mixture of experts inside a small residual network."""
import torch
import torch.nn.functional as F
from torch import nn


class Router(nn.Module):
    def __init__(self, dim, n_experts):
        super().__init__()
        self.gate = nn.Linear(dim, n_experts)

    def forward(self, x):
        probs = self.gate(x).softmax(-1)
        top_p, top_i = probs.max(-1)
        return probs, top_p, top_i


class MoELayer(nn.Module):
    def __init__(self, dim, n_experts, hidden):
        super().__init__()
        self.n_experts = n_experts
        self.norm = nn.LayerNorm(dim)
        self.router = Router(dim, n_experts)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(dim, hidden), nn.GELU(), nn.Linear(hidden, dim)) for _ in range(n_experts)
        )

    def balance_loss(self, probs, top_i):
        load = F.one_hot(top_i, self.n_experts).float().mean(0)  #! also
        return self.n_experts * (load * load).sum()  #- here
#+         importance = probs.mean(0)
#+         return self.n_experts * (load * importance).sum()

    def forward(self, x):
        h = self.norm(x)
        probs, top_p, top_i = self.router(h)
        out = torch.zeros_like(x)
        for e, expert in enumerate(self.experts):
            rows = (top_i == e).nonzero().squeeze(1)
            if len(rows):
                out = out.index_add(0, rows, top_p[rows, None] * expert(h[rows]))
        return x + out, self.balance_loss(probs, top_i)  #! also


class MoENet(nn.Module):
    def __init__(self, n_in=6, dim=16, layers=2, n_experts=3, classes=3):
        super().__init__()
        self.stem = nn.Linear(n_in, dim)
        self.layers = nn.ModuleList(MoELayer(dim, n_experts, 32) for _ in range(layers))
        self.head = nn.Linear(dim, classes)

    def forward(self, x):
        x, aux = self.stem(x), []
        for layer in self.layers:
            x, a = layer(x)
            aux.append(a)
        return self.head(x), torch.stack(aux).mean()


class MoETrainer:
    def __init__(self, model, aux_weight=0.05, lr=3e-3):
        self.model, self.aux_weight = model, aux_weight
        self.opt = torch.optim.AdamW(model.parameters(), lr=lr)

    def step(self, x, y):
        logits, aux = self.model(x)
        loss = F.cross_entropy(logits, y) + self.aux_weight * aux  #! here
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item(), aux


torch.manual_seed(4)
trainer = MoETrainer(MoENet())
for step in range(14):
    x = torch.randn(96, 6)
    y = (x[:, 0] > 0).long() + (x[:, 1] > 0.5).long()
    loss, aux = trainer.step(x, y)
print("loss", loss, "aux", aux.item())
