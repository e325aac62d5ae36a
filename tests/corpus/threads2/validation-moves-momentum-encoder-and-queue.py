# /// case
# title = "Validation updates the momentum encoder and the queue"
# category = "mode"
# kind = "state-updated-in-validation"
# severity = "warning"
# names = ["momentum_update", "queue", "validation_step", "forward"]
# symptom = "validation images become negatives of training"
# symptom_check = "not torch.equal(keys_before, model.queue)"
# cause = "forward() updates whatever the mode"
# fix = "update in training only"
# evidence = [
#     { url = "https://github.com/Lightning-Universe/lightning-bolts/pull/631", title = "Remove momentum updating from val step and add separate val queue" },
# ]
# ///
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class MocoV2(nn.Module):
    def __init__(self, dim=6, num_negatives=32, momentum=0.9, temperature=0.2):
        super().__init__()
        self.encoder_q = nn.Sequential(nn.Linear(12, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, dim))
        self.encoder_k = copy.deepcopy(self.encoder_q).requires_grad_(False)
        self.momentum, self.temperature = momentum, temperature
        self.register_buffer("queue", F.normalize(torch.randn(dim, num_negatives), dim=0))
        self.register_buffer("ptr", torch.zeros(1, dtype=torch.long))

    @torch.no_grad()
    def momentum_update(self):
        for q, k in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
            k.lerp_(q, 1 - self.momentum)

    @torch.no_grad()
    def dequeue_and_enqueue(self, keys):
        at = int(self.ptr)
        self.queue[:, at : at + len(keys)] = keys.T
        self.ptr[0] = (at + len(keys)) % self.queue.shape[1]

    def forward(self, img_q, img_k):
        q = F.normalize(self.encoder_q(img_q), dim=1)
        with torch.no_grad():
            self.momentum_update()  #- here
#+             if self.training:
#+                 self.momentum_update()
            k = F.normalize(self.encoder_k(img_k), dim=1)
        l_pos = (q * k).sum(1, keepdim=True)
        logits = torch.cat([l_pos, q @ self.queue.clone()], 1) / self.temperature
        self.dequeue_and_enqueue(k)  #- here
#+         if self.training:
#+             self.dequeue_and_enqueue(k)
        return F.cross_entropy(logits, torch.zeros(len(q), dtype=torch.long))

    def validation_step(self, x):
        return self(x + 0.1 * torch.randn_like(x), x).item()  #! also


torch.manual_seed(84)
model = MocoV2()
optimizer = torch.optim.SGD(model.encoder_q.parameters(), lr=0.05, momentum=0.9)
for epoch in range(2):
    model.train()
    for _ in range(3):
        x = torch.randn(8, 12)
        loss = model(x + 0.1 * torch.randn_like(x), x + 0.1 * torch.randn_like(x))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    keys_before = model.queue.clone()
    with torch.no_grad():
        scores = [model.validation_step(torch.randn(8, 12)) for _ in range(2)]
print(loss.item(), scores)
