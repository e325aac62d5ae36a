# /// case
# title = "Gradients are synchronised in the first micro-batch instead of the last"
# category = "distributed"
# kind = "ddp-step-unsynchronised"
# severity = "warning"
# names = ["no_sync", "accum_grad", "batch_idx"]
# symptom = "each step uses gradients of this rank alone"
# symptom_check = "not any(trainer.synced_at_step)"
# cause = "the condition is off by one"
# fix = "(batch_idx + 1) % accum_grad == 0"
# evidence = [
#     { url = "https://github.com/modelscope/FunASR/pull/3472", title = "fix(train): align DDP no_sync with gradient accumulation" },
# ]
# ///
import contextlib
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)


@dataclass
class Options:
    accum_grad: int = 3
    lr: float = 1e-2
    grad_clip: float = 5.0


class Trainer:
    def __init__(self, model, options):
        self.model, self.options = DDP(model), options
        self.optim = torch.optim.Adam(model.parameters(), lr=options.lr)
        self.synced_at_step = []

    def train_epoch(self, loader):
        self.model.train()
        self.optim.zero_grad()
        for batch_idx, (speech, text) in enumerate(loader):
            sync = batch_idx % self.options.accum_grad == 0  #- here
#+             sync = (batch_idx + 1) % self.options.accum_grad == 0
            context = contextlib.nullcontext() if sync else self.model.no_sync()
            with context:  #! also
                loss = nn.functional.cross_entropy(self.model(speech), text)
                (loss / self.options.accum_grad).backward()
            if (batch_idx + 1) % self.options.accum_grad == 0:
                self.synced_at_step.append(sync)
                nn.utils.clip_grad_norm_(self.model.parameters(), self.options.grad_clip)
                self.optim.step()  #! also
                self.optim.zero_grad()
        return loss.item()


torch.manual_seed(121)
trainer = Trainer(nn.Sequential(nn.Linear(12, 20), nn.ReLU(), nn.Linear(20, 5)), Options())
loader = [(torch.randn(6, 12), torch.randint(0, 5, (6,))) for _ in range(9)]
print(trainer.train_epoch(loader), trainer.synced_at_step)
dist.destroy_process_group()
