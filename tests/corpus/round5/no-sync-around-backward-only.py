# /// case
# title = "no_sync holds for backward, but not for forward"
# category = "distributed"
# kind = "no-sync-without-forward"
# kinds_also_ok = ["ddp-needless-synchronisation"]
# severity = "warning"
# names = ["no_sync", "compute_forward"]
# symptom = "gradients are reduced in each micro-batch"
# symptom_check = "reductions > updates"
# cause = "DDP prepares the reduction in forward"
# fix = "put forward under no_sync too"
# evidence = [
#     { url = "https://github.com/speechbrain/speechbrain/issues/1802", title = "[Bug]: DDP is going blblblblblblblbl" },
# ]
# ///
import contextlib

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)


class Brain:
    def __init__(self, module, grad_accumulation_factor=4):
        self.module = DDP(module)
        self.module.register_comm_hook(self, Brain.on_bucket)
        self.optimizer = torch.optim.Adam(module.parameters(), lr=1e-3)
        self.factor, self.step = grad_accumulation_factor, 0
        self.reductions = self.updates = 0

    @staticmethod
    def on_bucket(brain, bucket):
        brain.reductions += 1
        return dist.all_reduce(bucket.buffer(), async_op=True).get_future().then(lambda f: f.value()[0])

    def compute_forward(self, batch):
        feats, _ = batch
        return self.module(feats).log_softmax(-1)

    def compute_objectives(self, predictions, batch):
        _, tokens = batch
        lengths = torch.full((len(tokens),), predictions.shape[1])
        return nn.functional.ctc_loss(predictions.transpose(0, 1), tokens, lengths, torch.full_like(lengths, tokens.shape[1]))

    def fit_batch(self, batch):
        self.step += 1
        should_step = self.step % self.factor == 0
        context = contextlib.nullcontext() if should_step else self.module.no_sync()
        outputs = self.compute_forward(batch)  #- here
        loss = self.compute_objectives(outputs, batch)  #-
        with context:  #! here
#+             outputs = self.compute_forward(batch)
#+             loss = self.compute_objectives(outputs, batch)
            (loss / self.factor).backward()
        if should_step:
            nn.utils.clip_grad_norm_(self.module.parameters(), 5.0)
            self.optimizer.step()
            self.optimizer.zero_grad()
            self.updates += 1
        return loss.item()


torch.manual_seed(94)
brain = Brain(nn.Sequential(nn.Linear(12, 24), nn.LeakyReLU(), nn.Linear(24, 9)))
for _ in range(8):
    loss = brain.fit_batch((torch.randn(3, 14, 12), torch.randint(1, 9, (3, 4))))
reductions, updates = brain.reductions, brain.updates
print(loss, reductions, updates)
dist.destroy_process_group()
