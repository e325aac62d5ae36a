import torch
import torch.nn.functional as F
from torch import nn


def load_balancing_loss(gate_logits, num_experts, top_k=2):
    weights = gate_logits.softmax(-1)
    _, selected = torch.topk(weights, top_k, dim=-1)
    expert_mask = F.one_hot(selected, num_experts).amax(-2).float()
    tokens_per_expert = expert_mask.mean(0)
    router_prob = expert_mask.mean(0)
    return num_experts * (tokens_per_expert * router_prob).sum()


class SparseBlock(nn.Module):
    def __init__(self, dim=8, num_experts=4, top_k=2):
        super().__init__()
        self.top_k, self.num_experts = top_k, num_experts
        self.gate = nn.Linear(dim, num_experts, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(dim, 2 * dim), nn.SiLU(), nn.Linear(2 * dim, dim)) for _ in range(num_experts)
        )

    def forward(self, x):
        logits = self.gate(x)
        weight, chosen = torch.topk(logits.softmax(-1), self.top_k, dim=-1)
        weight = weight / weight.sum(-1, keepdim=True)
        out = torch.zeros_like(x)
        for e, expert in enumerate(self.experts):
            share = (weight * (chosen == e)).sum(-1, keepdim=True)
            out = out + share * expert(x)
        return x + out, logits


torch.manual_seed(6)
blocks = nn.ModuleList([SparseBlock(), SparseBlock()])
head = nn.Linear(8, 10)
optimizer = torch.optim.AdamW([*blocks.parameters(), *head.parameters()], lr=1e-2)
for step in range(5):
    x, y = torch.randn(48, 8), torch.randint(0, 10, (48,))
    gate_logits = []
    for block in blocks:
        x, logits = block(x)
        gate_logits.append(logits)
    aux = load_balancing_loss(torch.cat(gate_logits), 4)
    loss = F.cross_entropy(head(x), y) + 0.02 * aux
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(aux.item())
