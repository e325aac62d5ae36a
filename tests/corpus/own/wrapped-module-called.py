# /// case
# category = "wiring"
# kind = "ddp-forward-bypassed"
# severity = "warning"
# names = ["ddp", "net"]
# ///
#-
import os
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

torch.manual_seed(0)
store = tempfile.NamedTemporaryFile(delete=False)
dist.init_process_group("gloo", init_method=f"file://{store.name}x", rank=0, world_size=1)
net = nn.Linear(4, 2)
ddp = DistributedDataParallel(net)
opt = torch.optim.SGD(ddp.parameters(), lr=0.1)
for _ in range(3):
    logits = net(torch.randn(6, 4))  #- here
#+     logits = ddp(torch.randn(6, 4))
    loss = nn.functional.cross_entropy(logits, torch.randint(0, 2, (6,)))
    opt.zero_grad()
    loss.backward()  #! also
    opt.step()
    print(loss.item())
dist.destroy_process_group()
os.unlink(store.name)
