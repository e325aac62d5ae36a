# /// case
# title = "Only the negatives are divided by the temperature"
# category = "loss"
# kind = "inconsistent-temperature"
# severity = "warning"
# names = ["temperature", "positive_logit", "negative_logits"]
# symptom = "a perfect positive loses to poor negatives"
# symptom_check = "not torch.allclose(value, reference, atol=1e-4)"
# cause = "the positive logits are concatenated unscaled"
# fix = "divide all logits"
# evidence = [
#     { url = "https://github.com/RElbers/info-nce-pytorch/pull/17", title = "Implemented NCE loss." },
#     { url = "https://github.com/huiserwang/ContrastMask/issues/4", title = "Code about the INFOloss" },
# ]
# ///
import torch
import torch.nn.functional as F
from torch import nn


class InfoNCE(nn.Module):
    def __init__(self, temperature=0.1):
        super().__init__()
        self.temperature = temperature

    def forward(self, query, positive_key, negative_keys):
        query, positive_key, negative_keys = (F.normalize(v, dim=-1) for v in (query, positive_key, negative_keys))
        positive_logit = (query * positive_key).sum(dim=1, keepdim=True)  #! here
        negative_logits = query @ negative_keys.T / self.temperature  #-
#+         negative_logits = query @ negative_keys.T
        logits = torch.cat([positive_logit, negative_logits], dim=1)  #! also
        labels = torch.zeros(len(logits), dtype=torch.long)
        return F.cross_entropy(logits, labels)  #-
#+         return F.cross_entropy(logits / self.temperature, labels)


class MoCoLike(nn.Module):
    def __init__(self, dim=16, queue=64, m=0.99):
        super().__init__()
        self.m = m
        self.encoder_q, self.encoder_k = (nn.Sequential(nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, dim)) for _ in range(2))
        self.encoder_k.load_state_dict(self.encoder_q.state_dict())
        self.encoder_k.requires_grad_(False)
        self.register_buffer("queue", F.normalize(torch.randn(queue, dim), dim=1))

    @torch.no_grad()
    def key(self, x):
        for q, k in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
            k.lerp_(q, 1 - self.m)
        return F.normalize(self.encoder_k(x), dim=1)

    @torch.no_grad()
    def enqueue(self, k):
        self.queue = torch.cat([self.queue[len(k):], k])


torch.manual_seed(40)
model, criterion = MoCoLike(), InfoNCE()
optimizer = torch.optim.SGD(model.encoder_q.parameters(), lr=0.03, momentum=0.9)
for step in range(10):
    view = torch.randn(16, 24)
    q, k = model.encoder_q(view + 0.1 * torch.randn_like(view)), model.key(view + 0.1 * torch.randn_like(view))
    loss = criterion(q, k, model.queue)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    model.enqueue(k)
a, b, n = torch.randn(3, 8), torch.randn(3, 8), torch.randn(5, 8)
value = criterion(a, b, n)
cos = torch.cat([F.cosine_similarity(a, b)[:, None], F.cosine_similarity(a[:, None], n[None], dim=-1)], 1) / 0.1
reference = -cos.log_softmax(1)[:, 0].mean()
print(loss.item(), value.item(), reference.item())
