# /// case
# title = "The router only picks experts; its probability never multiplies their output"
# category = "graph-break"
# kind = "router-without-gradient"
# kinds_also_ok = ["gate-not-applied", "non-differentiable-argmax", "parameters-without-gradient", "unused-parameter"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["router", "gate", "chosen"]
# symptom = "the load of the experts is never learned, router.weight stays as it was drawn"
# symptom_check = "model.moe.router.weight.grad is None"
# cause = "Indices carry no gradient; with no factor gate in the output the router is outside the graph of the loss."
# fix = "multiply each expert's output by its gate"
# ///
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F


@dataclass
class MoEConfig:
    vocab_size: int = 80
    d_model: int = 32
    d_ff: int = 48
    n_experts: int = 4
    n_intents: int = 5
    max_len: int = 12


class SwitchFFN(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.norm = nn.LayerNorm(cfg.d_model)
        self.router = nn.Linear(cfg.d_model, cfg.n_experts, bias=False)  #! also
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(cfg.d_model, cfg.d_ff), nn.GELU(), nn.Linear(cfg.d_ff, cfg.d_model))
            for _ in range(cfg.n_experts)
        )

    def forward(self, hidden):
        tokens = self.norm(hidden).flatten(0, 1)
        gate, chosen = self.router(tokens).softmax(-1).max(-1)  #! also
        mixed = torch.zeros_like(tokens)
        for index, expert in enumerate(self.experts):
            rows = (chosen == index).nonzero().squeeze(-1)  #! also
            mixed = mixed.index_add(0, rows, expert(tokens[rows]))  #- here
#+             mixed = mixed.index_add(0, rows, gate[rows, None] * expert(tokens[rows]))
        self.load, self.confidence = chosen.bincount(minlength=len(self.experts)), gate.mean().item()
        return hidden + mixed.view_as(hidden)


class IntentModel(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.embed = nn.Embedding(cfg.vocab_size, cfg.d_model)
        self.moe = SwitchFFN(cfg)
        self.classifier = nn.Linear(cfg.d_model, cfg.n_intents)

    def forward(self, input_ids):
        return self.classifier(self.moe(self.embed(input_ids)).mean(1))


def batches(cfg, count, size):
    for _ in range(count):
        labels = torch.randint(cfg.n_intents, (size,))
        noise = torch.randint(cfg.vocab_size, (size, cfg.max_len))
        signal = labels[:, None] * 16 + torch.randint(16, (size, cfg.max_len))
        yield torch.where(torch.rand(size, cfg.max_len) < 0.4, signal, noise), labels


torch.manual_seed(11)
cfg = MoEConfig()
model = IntentModel(cfg)
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
for step, (input_ids, labels) in enumerate(batches(cfg, 40, 32)):
    loss = F.cross_entropy(model(input_ids), labels)
    optimizer.zero_grad()
    loss.backward()  #! also
    optimizer.step()
    if step % 10 == 9:
        print(step, round(loss.item(), 4), model.moe.load.tolist(), round(model.moe.confidence, 3))
