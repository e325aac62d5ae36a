import torch
from torch import nn

torch.manual_seed(47)


class Lora(nn.Module):
    def __init__(self, base, r=3, alpha=6):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.a = nn.Parameter(torch.randn(r, base.in_features) / base.in_features ** 0.5)
        self.b = nn.Parameter(torch.zeros(base.out_features, r))
        self.scale, self.merged = alpha / r, False

    def forward(self, x):
        out = self.base(x)
        return out if self.merged else out + self.scale * (x @ self.a.T @ self.b.T)

    @torch.no_grad()
    def merge(self):
        self.base.weight += self.scale * self.b @ self.a
        self.merged = True


net = nn.Sequential(Lora(nn.Linear(9, 32)), nn.Tanh(), Lora(nn.Linear(32, 3)))
optimizer = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad], lr=5e-3)
for step in range(12):
    x = torch.randn(32, 9)
    loss = nn.functional.cross_entropy(net(x), x[:, :3].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with torch.no_grad():
    before = net(x)
    for layer in (net[0], net[2]):
        layer.merge()
    print(loss.item(), (net(x) - before).abs().max().item())
