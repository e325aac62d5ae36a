"""BP740 ddp-forward-bypassed."""

HEAD = """
import tempfile
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
dist.init_process_group("gloo", init_method=f"file://{tempfile.mktemp()}", rank=0, world_size=1)
net = nn.Linear(3, 1)
ddp = DDP(net)
optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
"""

PROGRAMS = {
    "the module by the name it had before": HEAD
    + """
for x in torch.randn(3, 8, 3):
    optimizer.zero_grad()
    loss = net(x).pow(2).mean()  # <- BP740
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
""",
    "inside a class": """
import tempfile
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

class Trainer:
    def __init__(self):
        self.model = DDP(nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1)))
        self.optim = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def step(self, x):
        self.optim.zero_grad()
        out = self.model.module(x)  # <- BP740
        out.pow(2).mean().backward()
        self.optim.step()

dist.init_process_group("gloo", init_method=f"file://{tempfile.mktemp()}", rank=0, world_size=1)
trainer = Trainer()
for x in torch.randn(3, 8, 3):
    trainer.step(x)
dist.destroy_process_group()
""",
    "the inner call is looked at, the weights are penalised": HEAD
    + """
for x in torch.randn(3, 8, 3):
    optimizer.zero_grad()
    print(net(x).mean().item())
    sum(p.pow(2).sum() for p in ddp.parameters()).backward()
    optimizer.step()
dist.destroy_process_group()
""",
    "gradients of the input through the inner module": HEAD
    + """
x = torch.randn(8, 3, requires_grad=True)
(g,) = torch.autograd.grad(net(x).sum(), x)
print(g.norm().item())
dist.destroy_process_group()
""",
}
