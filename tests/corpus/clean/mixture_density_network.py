import torch
from torch import nn
from torch.distributions import Categorical, MixtureSameFamily, Normal

torch.manual_seed(0)


class MDN(nn.Module):
    def __init__(self, k=4, h=24):
        super().__init__()
        self.h = nn.Sequential(nn.Linear(1, h), nn.Tanh())
        self.pi, self.mu, self.sigma = nn.Linear(h, k), nn.Linear(h, k), nn.Linear(h, k)

    def forward(self, x):
        h = self.h(x)
        return MixtureSameFamily(Categorical(logits=self.pi(h)), Normal(self.mu(h), self.sigma(h).exp().clamp_min(1e-3)))


t = torch.rand(200) * 10 - 5
data = 7 * torch.sin(0.75 * t) + 0.5 * t + 0.3 * torch.randn(200)
x, y = (data / 10).unsqueeze(1), t / 5
net = MDN()
opt = torch.optim.Adam(net.parameters(), lr=2e-2)
for step in range(15):
    loss = -net(x).log_prob(y).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if not step % 5:
        print(step, loss.item())
with torch.no_grad():
    print(net(torch.zeros(3, 1)).sample((2,)).shape)
