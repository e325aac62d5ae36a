import torch
from torch import nn

torch.manual_seed(18)
actor = nn.Linear(4, 2)
lagrange = nn.Parameter(torch.zeros(()))
opt = torch.optim.Adam(actor.parameters(), lr=1e-2)
for _ in range(20):
    obs = torch.randn(32, 4)
    probs = actor(obs).softmax(-1)
    reward = (probs[:, 0] * obs[:, 0]).mean()
    cost = probs[:, 0].mean() - 0.3
    opt.zero_grad()
    (-reward + lagrange.detach().exp() * cost).backward()
    opt.step()
    with torch.no_grad():
        lagrange += 0.1 * cost
print(lagrange.item())
