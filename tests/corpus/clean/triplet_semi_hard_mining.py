import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 32), nn.PReLU(), nn.Linear(32, 8))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)


def batch_hard(emb, labels, margin=0.3):
    dist = torch.cdist(emb, emb)
    same = labels[:, None] == labels[None]
    eye = torch.eye(len(labels), dtype=torch.bool)
    ap = dist.masked_fill(~same | eye, 0.0).max(1).values
    an = dist.masked_fill(same, float("inf")).min(1).values
    loss = F.relu(ap - an + margin)
    active = (loss > 0).float().mean()
    return loss.mean(), active


centres = torch.randn(5, 8)
for step in range(10):
    labels = torch.arange(5).repeat_interleave(4)
    x = centres[labels] + 0.8 * torch.randn(20, 8)
    emb = F.normalize(net(x), dim=-1)
    loss, active = batch_hard(emb, labels)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, loss.item(), active.item())
