# /// case
# title = "forward through ddp.module: no gradient synchronisation"
# category = "distributed"
# kind = "ddp-forward-bypassed"
# severity = "warning"
# names = ["ddp"]
# difficulty = "hard"
# symptom = "silent: the DDP forward never runs, every rank trains on its own"
# symptom_check = "calls == 0"
# cause = "DDP prepares the reducer in its own forward"
# fix = "call ddp(x)"
# evidence = [
#     { url = "https://github.com/rosinality/swapping-autoencoder-pytorch/issues/22" },
#     { url = "https://github.com/intel/e2eAIOK/pull/198" },
#     { url = "https://github.com/pytorch/pytorch/pull/20282" },
# ]
# ///
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

torch.manual_seed(1)
dist.init_process_group("gloo", init_method=f"file://{tempfile.mktemp()}", rank=0, world_size=1)
ddp = DDP(nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 1)))
opt = torch.optim.SGD(ddp.parameters(), lr=0.05)
calls = 0


def count(_module, _args):
    global calls
    calls += 1


ddp.register_forward_pre_hook(count)
for _ in range(3):
    x = torch.randn(10, 5)
    opt.zero_grad()
    loss = (ddp.module(x) - x.mean(1, keepdim=True)).pow(2).mean()  #- here
#+     loss = (ddp(x) - x.mean(1, keepdim=True)).pow(2).mean()
    loss.backward()
    opt.step()
dist.destroy_process_group()
print(loss.item(), calls)
