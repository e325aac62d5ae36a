import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 32), nn.SiLU(), nn.Linear(32, 1))
per_parameter = {p: torch.optim.Adam([p], lr=1e-2) for p in model.parameters()}


def step_now(p):
    per_parameter[p].step()
    per_parameter[p].zero_grad()


for p in model.parameters():
    p.register_post_accumulate_grad_hook(step_now)

for i in range(8):
    x = torch.randn(24, 6)
    loss = (model(x) - x.prod(1, keepdim=True)).square().mean()
    loss.backward()
print(loss.item())
