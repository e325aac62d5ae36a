# /// case
# category = "wiring"
# kind = "ddp-step-unsynchronised"
# severity = "warning"
# names = ["model"]
# ///
#-
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

torch.manual_seed(0)
store = tempfile.NamedTemporaryFile(delete=False)
dist.init_process_group("gloo", init_method=f"file://{store.name}", rank=0, world_size=1)
model = DistributedDataParallel(nn.Sequential(nn.Linear(5, 10), nn.ReLU(), nn.Linear(10, 1)))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
ACC = 2

for step in range(3):
    opt.zero_grad()
    with model.no_sync():  #- here
        for k in range(ACC):  #-
            x = torch.randn(4, 5)  #-
#+     for k in range(ACC):
#+         x = torch.randn(4, 5)
#+         if k < ACC - 1:
#+             with model.no_sync():
#+                 loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean() / ACC
#+                 loss.backward()
#+         else:
            loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean() / ACC
            loss.backward()  #! also
    opt.step()
    print(step, loss.item())
dist.destroy_process_group()
