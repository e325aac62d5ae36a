import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(7)
WAY, SHOT, QUERY = 4, 3, 5


class Encoder(nn.Module):
    def __init__(self, d=8, hid=24, z=6):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d, hid), nn.BatchNorm1d(hid), nn.ReLU(), nn.Linear(hid, z))

    def forward(self, x):
        return self.net(x)


def episode(d=8):
    centre = torch.randn(WAY, 1, d) * 2
    x = centre + torch.randn(WAY, SHOT + QUERY, d)
    return x[:, :SHOT], x[:, SHOT:]


enc = Encoder()
opt = torch.optim.Adam(enc.parameters(), lr=1e-3)
sched = torch.optim.lr_scheduler.StepLR(opt, step_size=5, gamma=0.5)
for ep in range(10):
    support, query = episode()
    opt.zero_grad()
    z = enc(torch.cat([support.flatten(0, 1), query.flatten(0, 1)]))
    protos = z[: WAY * SHOT].view(WAY, SHOT, -1).mean(1)
    zq = z[WAY * SHOT :]
    logp = F.log_softmax(-torch.cdist(zq, protos) ** 2, dim=1).view(WAY, QUERY, -1)
    target = torch.arange(WAY).view(WAY, 1, 1).expand(WAY, QUERY, 1)
    loss = -logp.gather(2, target).squeeze().view(-1).mean()
    acc = logp.argmax(2).eq(target.squeeze(2)).float().mean()
    loss.backward()
    opt.step()
    sched.step()
    print(ep, loss.item(), acc.item())
