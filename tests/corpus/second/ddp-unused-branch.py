# /// case
# title = "A DDP model has parameters that take no part in the loss"
# category = "distributed"
# kind = "ddp-unused-parameter"
# severity = "error"
# names = ["net.spare"]
# difficulty = "medium"
# symptom = "RuntimeError: Expected to have finished reduction in the prior iteration, in iteration 2"
# raises = "RuntimeError"
# raises_message = "Expected to have finished reduction in the prior iteration"
# cause = "the reducer waits for the gradient of spare"
# fix = "remove the layer (or find_unused_parameters=True)"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/43259" },
#     { url = "https://github.com/ImprintLab/MedSegDiff/issues/27" },
#     { url = "https://github.com/Megvii-BaseDetection/YOLOX/issues/885" },
# ]
# ///
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.used = nn.Linear(6, 3)
        self.spare = nn.Linear(6, 3)  #- here

    def forward(self, x):
        return self.used(x)


torch.manual_seed(0)
dist.init_process_group("gloo", init_method=f"file://{tempfile.mktemp()}", rank=0, world_size=1)
net = DistributedDataParallel(Net())  #! here
opt = torch.optim.SGD(net.parameters(), lr=0.1)
try:
    for _ in range(3):
        opt.zero_grad()
        loss = nn.functional.cross_entropy(net(torch.randn(8, 6)), torch.randint(0, 3, (8,)))  #! also
        loss.backward()  #! also
        opt.step()
finally:
    dist.destroy_process_group()
print(loss.item())
