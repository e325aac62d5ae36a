"""BP742 ddp-step-unsynchronised."""

TRAIN = """
import contextlib
import tempfile
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
place = f"file://{{tempfile.mktemp()}}"
torch.distributed.init_process_group("gloo", init_method=place, rank=0, world_size=1)
wrapper = DistributedDataParallel(nn.Linear(3, 1))
optimizer = torch.optim.SGD(wrapper.parameters(), lr=0.1)

def walk(x):
    {inside}
        wrapper(x).pow(2).mean().backward()

for x in torch.randn({steps}, 8, 3):
    optimizer.zero_grad()
    {outside}
        walk(x)
    optimizer.step()
torch.distributed.destroy_process_group()
"""


def train(*, inside: str = "if True:", outside: str = "if True:", steps: int = 3) -> str:
    """A loop over a wrapped module."""
    return TRAIN.format(inside=inside, outside=outside, steps=steps)


PROGRAMS = {
    "in the function that walks": train(inside="with wrapper.no_sync():  # <- BP742"),
    "once is no pattern": train(inside="with wrapper.no_sync():", steps=1),
    "what is around the caller is not looked at": train(outside="with wrapper.no_sync():"),
    "another context": train(inside="with contextlib.nullcontext():"),
    "only some steps": train(inside="with contextlib.nullcontext() if x[0, 0] > 0 else wrapper.no_sync():"),
}
