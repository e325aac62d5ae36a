# /// case
# title = "Attention branch is called on the wrapped module"
# category = "distributed"
# kind = "ddp-forward-bypassed"
# severity = "warning"
# names = ["model.module", "forward_decoder"]
# symptom = "no gradient is reduced between ranks"
# symptom_check = "reductions == []"
# cause = "forward() of the wrapper is not called"
# fix = "call the wrapper with all that the losses need"
# evidence = [
#     { url = "https://github.com/k2-fsa/icefall/issues/226", title = "[BUG] Possible issue with DDP and asr decoder gradient syncing" },
# ]
# ///
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
reductions = []


class Conformer(nn.Module):
    def __init__(self, feat=8, dim=12, tokens=7):
        super().__init__()
        self.encoder = nn.GRU(feat, dim, batch_first=True)
        self.ctc = nn.Linear(dim, tokens)
        self.decoder = nn.GRU(dim, dim, batch_first=True)
        self.att = nn.Linear(dim, tokens)

    def forward(self, x):  #-
#+     def forward(self, x, targets=None):
        memory, _ = self.encoder(x)
        return self.ctc(memory).log_softmax(-1), memory  #-
#+         att_loss = None if targets is None else self.forward_decoder(memory, targets)
#+         return self.ctc(memory).log_softmax(-1), att_loss

    def forward_decoder(self, memory, targets):
        h, _ = self.decoder(memory)
        return nn.functional.cross_entropy(self.att(h).flatten(0, 1), targets.flatten())


def note(state, bucket):
    reductions.append(bucket.index())
    return default_hooks.allreduce_hook(state, bucket)


def compute_loss(model, x, targets, att_rate=0.7):
    ctc_out, memory = model.module(x)  #- here
#+     ctc_out, att_loss = model(x, targets)
    ctc_loss = nn.functional.nll_loss(ctc_out.flatten(0, 1), targets.flatten())
    att_loss = model.module.forward_decoder(memory, targets)  #- here
    return (1 - att_rate) * ctc_loss + att_rate * att_loss


torch.manual_seed(122)
model = nn.parallel.DistributedDataParallel(Conformer(), find_unused_parameters=True)
model.register_comm_hook(None, note)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
with torch.no_grad():
    model(torch.randn(1, 4, 8))
for batch_idx in range(4):
    x, targets = torch.randn(4, 9, 8), torch.randint(0, 7, (4, 9))
    loss = compute_loss(model, x, targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item(), reductions)
dist.destroy_process_group()
