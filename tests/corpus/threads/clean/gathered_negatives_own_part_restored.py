import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

torch.manual_seed(22)
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
a, b = nn.Linear(6, 4), nn.Linear(5, 4)
opt = torch.optim.Adam([*a.parameters(), *b.parameters()], lr=1e-3)


def gather(t):
    parts = [torch.empty_like(t) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, t.detach())
    parts[dist.get_rank()] = t
    return torch.cat(parts)


for _ in range(4):
    za, zb = F.normalize(a(torch.randn(8, 6)), dim=-1), F.normalize(b(torch.randn(8, 5)), dim=-1)
    loss = F.cross_entropy(gather(za) @ gather(zb).t() / 0.1, torch.arange(8))
    opt.zero_grad()
    loss.backward()
    opt.step()
dist.destroy_process_group()
