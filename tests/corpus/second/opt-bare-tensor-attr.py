# /// case
# title = "A learnable scale is a tensor with requires_grad=True instead of nn.Parameter"
# category = "optimizer-wiring"
# kind = "unregistered-parameters"
# severity = "warning"
# names = ["self.scale"]
# difficulty = "medium"
# symptom = "silent: scale gets gradients, is not in parameters(), never moves and its grad is never cleared"
# symptom_check = "torch.equal(norm.scale.detach(), torch.ones(8))"
# cause = "only nn.Parameter attributes are registered"
# fix = "nn.Parameter(torch.ones(...))"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/59925" },
#     { url = "https://github.com/bubbliiiing/efficientdet-pytorch/issues/37" },
# ]
# ///
import torch
from torch import nn


class ScaleNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.scale = torch.ones(dim, requires_grad=True)  #- here
#+         self.scale = nn.Parameter(torch.ones(dim))
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        h = self.proj(x)
        return self.scale * h / h.std(dim=-1, keepdim=True).clamp_min(1e-5)


torch.manual_seed(36)
norm = ScaleNorm(8)
opt = torch.optim.SGD(norm.parameters(), lr=0.1)
for _ in range(10):
    x = torch.randn(16, 8)
    opt.zero_grad()
    loss = (norm(x) - 3 * x).abs().mean()
    loss.backward()
    opt.step()
print(loss.item(), len(list(norm.parameters())))
