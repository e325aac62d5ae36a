"""DistributedDataParallel with gloo, alone and in two processes; no_sync."""
import os
import sys
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def train(rank, size, file, out):
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=size)
    torch.manual_seed(0)
    net = DistributedDataParallel(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)))
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for step in range(3):
        optimizer.zero_grad()
        x = torch.randn(4, 4, generator=torch.Generator().manual_seed(10 * step + rank))
        with net.no_sync():
            net(x).mean().backward()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
    total = torch.tensor([p.detach().double().sum() for p in net.parameters()]).sum()
    dist.all_reduce(total)
    if rank == 0:
        with open(out, "w") as target:
            target.write(f"{loss.item().hex()} {total.item().hex()}")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("here", "spawn"):
            file, out = os.path.join(folder, kind), os.path.join(folder, kind + ".out")
            if kind == "here":
                train(0, 1, file, out)
            else:
                torch.multiprocessing.spawn(train, (2, file, out), nprocs=2)
            print(kind, open(out).read())
            sys.stdout.flush()
