# /// case
# title = "The router only picks the expert's number"
# category = "graph-break"
# kind = "router-without-gradient"
# kinds_also_ok = ["parameter-without-gradient", "non-differentiable-selection"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["router", "chosen", "weight"]
# symptom = "the router has no gradient and never changes"
# symptom_check = "layer.router.weight.grad is None"
# cause = "its output is used through an index only; the chosen probability is not multiplied in"
# fix = "multiply the expert's output by the probability of the choice"
# evidence = [
#     { url = "https://github.com/davidmrau/mixture-of-experts/issues/11", title = "Question about the noisy top-k gating" },
# ]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class SwitchLayer(nn.Module):
    """One expert per token."""

    def __init__(self, dim, n_experts):
        super().__init__()
        self.router = nn.Linear(dim, n_experts)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(dim, 32), nn.GELU(), nn.Linear(32, dim)) for _ in range(n_experts)
        )

    def forward(self, x):
        probs = self.router(x).softmax(-1)  #! also
        weight, chosen = probs.max(-1)  #! also
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            rows = chosen == i
            if rows.any():
                out[rows] = expert(x[rows])  #- here
#+                 out[rows] = weight[rows, None] * expert(x[rows])
        return x + out


torch.manual_seed(3)
layer = SwitchLayer(8, 4)
head = nn.Linear(8, 3)
opt = torch.optim.AdamW([*layer.parameters(), *head.parameters()], lr=3e-3)
tokens = torch.randn(128, 8)
labels = tokens[:, :3].argmax(-1)
for step in range(10):
    loss = F.cross_entropy(head(layer(tokens)), labels)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 5 == 0:
        print(step, loss.item())
