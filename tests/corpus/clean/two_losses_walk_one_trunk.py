import torch
from torch import nn

torch.manual_seed(0)
trunk = nn.Sequential(nn.Linear(6, 24), nn.ELU())
heads = nn.ModuleDict({"size": nn.Linear(24, 1), "kind": nn.Linear(24, 3)})
optimizer = torch.optim.Adam([*trunk.parameters(), *heads.parameters()], lr=3e-3)
history = {"size": [], "kind": []}
for _ in range(8):
    x = torch.randn(20, 6)
    h = trunk(x)
    losses = {
        "size": (heads["size"](h).squeeze(-1) - x.norm(dim=1)).pow(2).mean(),
        "kind": nn.functional.cross_entropy(heads["kind"](h), x[:, :3].argmax(1)),
    }
    optimizer.zero_grad()
    losses["size"].backward(retain_graph=True)
    losses["kind"].backward()
    optimizer.step()
    for name, loss in losses.items():
        history[name].append(loss.detach())
print({k: torch.stack(v).mean().item() for k, v in history.items()})
