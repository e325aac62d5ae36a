import torch
from torch import nn

torch.manual_seed(0)


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(6, 16), nn.ReLU())
        self.heads = nn.ModuleDict({"age": nn.Linear(16, 1), "kind": nn.Linear(16, 4)})
        self.log_var = nn.Parameter(torch.zeros(2))

    def forward(self, x):
        h = self.trunk(x)
        return {name: head(h) for name, head in self.heads.items()}


net = Shared()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for x in torch.randn(5, 20, 6):
    out = net(x)
    losses = torch.stack([
        nn.functional.l1_loss(out["age"].squeeze(1), x.sum(1)),
        nn.functional.cross_entropy(out["kind"], torch.randint(0, 4, (20,))),
    ])
    total = (losses * torch.exp(-net.log_var) + net.log_var).sum()
    opt.zero_grad()
    total.backward()
    opt.step()
    print({k: round(v, 3) for k, v in zip(net.heads, losses.tolist())})
