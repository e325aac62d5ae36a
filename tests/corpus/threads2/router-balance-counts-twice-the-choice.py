# /// case
# title = "Load balance of a router from hard counts only"
# category = "graph-break"
# kind = "graph-break-non-differentiable"
# kinds_also_ok = ["constant-loss-term", "graph-break-argmax"]
# severity = "warning"
# names = ["load_balancing_loss", "router_prob", "one_hot"]
# symptom = "aux has no grad_fn: the routers are never balanced"
# symptom_check = "aux.grad_fn is None"
# cause = "both factors come from the hard choice; one must be the mean probability"
# fix = "weights.mean(0)"
# evidence = [
#     { url = "https://github.com/huggingface/transformers/issues/28093", title = "load_balancing_loss in mixtral model" },
# ]
# ///
import torch
import torch.nn.functional as F
from torch import nn


def load_balancing_loss(gate_logits, num_experts, top_k=2):
    weights = gate_logits.softmax(-1)
    _, selected = torch.topk(weights, top_k, dim=-1)
    expert_mask = F.one_hot(selected, num_experts).amax(-2).float()
    tokens_per_expert = expert_mask.mean(0)
    router_prob = expert_mask.mean(0)  #- here
#+     router_prob = weights.mean(0)
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
    aux = load_balancing_loss(torch.cat(gate_logits), 4)  #! also
    loss = F.cross_entropy(head(x), y) + 0.02 * aux  #! also
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(aux.item())
