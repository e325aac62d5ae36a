# /// case
# title = "Loss is computed through ddp.module, not through the wrapper"
# category = "distributed"
# kind = "ddp-forward-bypassed"
# severity = "warning"
# names = ["ddp", "module", "training_loss"]
# difficulty = "hard"
# symptom = "With one process everything works; with several every rank trains its own model: the gradients are never reduced."
# symptom_check = "elements == 0"
# cause = "Calling a method of ddp.module skips DistributedDataParallel.forward, which arms the reducer; no all-reduce happens in backward."
# fix = "Compute the loss in forward() and call ddp(...)."
# evidence = [{ url = "https://github.com/k2-fsa/icefall/issues/226" }, { url = "https://github.com/pytorch/pytorch/pull/21736" }]
# ///
"""Single-node DDP training of a denoiser (gloo)."""
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel as DDP


class Denoiser(nn.Module):
    def __init__(self, dim=12):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, 32), nn.SiLU(), nn.Linear(32, dim))

    def training_loss(self, clean):
        noisy = clean + 0.3 * torch.randn_like(clean)
        return nn.functional.mse_loss(self.net(noisy), clean)

    def forward(self, clean):
        return self.training_loss(clean)


class Traffic:
    """Counts the gradient elements that are all-reduced."""

    def __init__(self, group):
        self.group, self.elements = group, 0

    def hook(self, state, bucket):
        self.elements += bucket.buffer().numel()
        return default_hooks.allreduce_hook(self.group, bucket)


def main(steps=12):
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        torch.manual_seed(0)
        ddp = DDP(Denoiser())  #! also
        traffic = Traffic(dist.group.WORLD)
        ddp.register_comm_hook(None, traffic.hook)
        opt = torch.optim.Adam(ddp.parameters(), lr=5e-3)
        basis = torch.randn(3, 12)
        losses = []
        for _ in range(steps):
            clean = torch.randn(64, 3) @ basis
            loss = ddp.module.training_loss(clean)  #- here
#+             loss = ddp(clean)
            opt.zero_grad()
            loss.backward()  #! also
            opt.step()
            losses.append(loss.item())
        return losses, traffic.elements
    finally:
        dist.destroy_process_group()


losses, elements = main()
print(losses[0], losses[-1], "reduced elements", elements)
