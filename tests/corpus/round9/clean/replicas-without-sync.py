import contextlib

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Coupled(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Linear(6, 24)
        self.flux = nn.Linear(24, 1)
        self.spare = nn.Linear(24, 3)

    def forward(self, x, spectra=False):
        h = torch.relu(self.encode(x))
        return self.spare(h) if spectra else self.flux(h).squeeze(-1)


def micro_batches(count, size):
    for number in range(count):
        x = torch.randn(size, 6)
        yield number == count - 1, x, x[:, 0] * x[:, 1] + 0.1 * x[:, 2]


def main():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    torch.manual_seed(26)
    model = DistributedDataParallel(Coupled(), find_unused_parameters=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    accumulate, reports = 3, []
    for step in range(6):
        total = 0.0
        for last, x, y in micro_batches(accumulate, 16):
            with contextlib.nullcontext() if last else model.no_sync():
                loss = nn.functional.mse_loss(model(x), y) / accumulate
                loss.backward()
            total += loss.item()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        optimizer.zero_grad()
        reports.append((round(total, 4), round(norm.item(), 3)))
    dist.destroy_process_group()
    return reports


if __name__ == "__main__":
    print(main())
