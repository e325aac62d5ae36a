import contextlib

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
torch.manual_seed(45)
model = DDP(nn.Sequential(nn.Linear(7, 16), nn.ReLU(), nn.Linear(16, 2)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
accumulate = 3
for update in range(4):
    optimizer.zero_grad()
    for micro in range(accumulate):
        last = micro == accumulate - 1
        with contextlib.nullcontext() if last else model.no_sync():
            x, y = torch.randn(8, 7), torch.randint(0, 2, (8,))
            loss = nn.functional.cross_entropy(model(x), y)
            (loss / accumulate).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    print(update, loss.item())
dist.destroy_process_group()
