# /// case
# title = "DDP model with an auxiliary head that is not used"
# category = "distributed"
# kind = "ddp-unused-parameter"
# severity = "error"
# names = ["aux_head", "use_aux", "ddp"]
# difficulty = "easy"
# symptom = "RuntimeError in the second forward: Expected to have finished reduction in the prior iteration."
# raises = "RuntimeError"
# raises_message = "Expected to have finished reduction in the prior iteration"
# cause = "aux_head is created always but used only if use_aux is set; its parameters never get a gradient and the reducer waits for them."
# fix = "Create aux_head only if it is used."
# evidence = [{ url = "https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html" }, { url = "https://github.com/pytorch/pytorch/pull/21736" }]
# ///
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class MultiExit(nn.Module):
    def __init__(self, use_aux):
        super().__init__()
        self.use_aux = use_aux
        self.low = nn.Sequential(nn.Linear(8, 24), nn.ReLU())
        self.high = nn.Sequential(nn.Linear(24, 24), nn.ReLU())
        self.head = nn.Linear(24, 3)
        self.aux_head = nn.Linear(24, 3)  #- here
#+         self.aux_head = nn.Linear(24, 3) if use_aux else None

    def forward(self, x):
        low = self.low(x)
        out = self.head(self.high(low))
        if self.use_aux:  #! also
            return out, self.aux_head(low)
        return out, None


def worker(use_aux, steps):
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        torch.manual_seed(0)
        ddp = DistributedDataParallel(MultiExit(use_aux))  #! here
        opt = torch.optim.SGD(ddp.parameters(), lr=0.1)
        for _ in range(steps):
            x = torch.randn(32, 8)
            y = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
            out, aux = ddp(x)  #! also
            loss = F.cross_entropy(out, y)
            if aux is not None:
                loss = loss + 0.3 * F.cross_entropy(aux, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        return loss.item()
    finally:
        dist.destroy_process_group()


print(worker(use_aux=False, steps=25))  #! also
