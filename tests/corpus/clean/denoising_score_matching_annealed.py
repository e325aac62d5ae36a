import torch
from torch import nn

torch.manual_seed(0)
sigmas = torch.logspace(0, -1.5, 6)


class Score(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 32), nn.Softplus(), nn.Linear(32, 32), nn.Softplus(), nn.Linear(32, 2))

    def forward(self, x, sigma):
        return self.net(torch.cat([x, sigma.log().expand(len(x), 1)], 1)) / sigma


score = Score()
opt = torch.optim.Adam(score.parameters(), lr=1e-3)
for it in range(12):
    x = torch.randn(64, 2) * 0.3 + torch.where(torch.rand(64, 1) < 0.5, 1.0, -1.0)
    sigma = sigmas[torch.randint(0, 6, (64,))].unsqueeze(1)
    noise = torch.randn_like(x) * sigma
    target = -noise / sigma**2
    s = score(x + noise, sigma)
    loss = 0.5 * ((s - target) ** 2).sum(1, keepdim=True).mul(sigma**2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
with torch.no_grad():
    y = torch.rand(10, 2) * 2 - 1
    for sg in sigmas:
        a = 2e-3 * (sg / sigmas[-1]) ** 2
        for _ in range(3):
            y = y + a / 2 * score(y, sg.view(1, 1)) + a.sqrt() * torch.randn_like(y)
print(loss.item(), y.abs().mean().item())
