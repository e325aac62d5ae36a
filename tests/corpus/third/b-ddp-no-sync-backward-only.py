# /// case
# title = "no_sync() around backward only"
# category = "distributed"
# kind = "ddp-no-sync-misplaced"
# severity = "warning"
# names = ["no_sync", "ddp", "backward"]
# difficulty = "hard"
# symptom = "Results are right, but gradients are all-reduced in every micro step; no_sync has no effect."
# symptom_check = "len(reductions) >= 40"
# cause = "DDP decides in forward whether the coming backward synchronises; the forward of the micro step runs outside no_sync()."
# fix = "Put forward and backward inside no_sync()."
# evidence = [{ url = "https://github.com/pytorch/PiPPy/issues/1133" }, { url = "https://github.com/baidu-baige/LoongForge/pull/163" }, { url = "https://github.com/speechbrain/speechbrain/issues/1802" }]
# ///
import contextlib
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

ACCUMULATE = 4
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
torch.manual_seed(0)
ddp = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1)))
reductions = []


def counting_hook(state, bucket):
    reductions.append(bucket.index())
    return default_hooks.allreduce_hook(dist.group.WORLD, bucket)


ddp.register_comm_hook(None, counting_hook)
opt = torch.optim.SGD(ddp.parameters(), lr=0.05)
x = torch.randn(160, 8)
y = x[:, :1] - x[:, 1:2]
for epoch in range(6):
    for k, idx in enumerate(torch.randperm(160).split(20), 1):
        last = k % ACCUMULATE == 0
        loss = nn.functional.mse_loss(ddp(x[idx]), y[idx]) / ACCUMULATE  #- here
        with contextlib.nullcontext() if last else ddp.no_sync():  #! here
#+             loss = nn.functional.mse_loss(ddp(x[idx]), y[idx]) / ACCUMULATE
            loss.backward()  #! here
        if last:
            opt.step()
            opt.zero_grad()
dist.destroy_process_group()
print("loss", loss.item() * ACCUMULATE, "bucket reductions", len(reductions))
