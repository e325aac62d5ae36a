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
        probs = self.router(x).softmax(-1)
        weight, chosen = probs.max(-1)
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            rows = chosen == i
            if rows.any():
                out[rows] = weight[rows, None] * expert(x[rows])
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
