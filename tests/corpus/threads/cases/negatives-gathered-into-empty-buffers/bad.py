import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

torch.manual_seed(20)
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
image, text = nn.Linear(10, 6), nn.Linear(7, 6)
opt = torch.optim.AdamW([*image.parameters(), *text.parameters()], lr=1e-3)


def gather(features):
    gathered = [torch.empty_like(features) for _ in range(dist.get_world_size())]
    dist.all_gather(gathered, features.detach())
    return torch.cat(gathered)


for step in range(5):
    zi = F.normalize(image(torch.randn(12, 10)), dim=-1)
    zt = F.normalize(text(torch.randn(12, 7)), dim=-1)
    logits = zi @ gather(zt).t() / 0.07
    loss = F.cross_entropy(logits, torch.arange(12))
    opt.zero_grad()
    loss.backward()
    opt.step()
dist.destroy_process_group()
print(loss.item())
