import torch
from torch import nn

torch.manual_seed(21)
q, k = nn.Linear(6, 4), nn.Linear(6, 4).requires_grad_(False)
k.load_state_dict(q.state_dict())
queue = torch.randn(32, 4)
opt = torch.optim.SGD(q.parameters(), lr=0.05)
at = 0
for _ in range(8):
    x = torch.randn(8, 6)
    query = nn.functional.normalize(q(x), dim=-1)
    key = nn.functional.normalize(k(x + 0.1 * torch.randn_like(x)), dim=-1)
    logits = torch.cat([(query * key).sum(-1, keepdim=True), query @ queue.clone().t()], 1) / 0.2
    opt.zero_grad()
    nn.functional.cross_entropy(logits, torch.zeros(8, dtype=torch.long)).backward()
    opt.step()
    queue.data[at : at + 8].copy_(key)
    at = (at + 8) % 32
    for slow, fast in zip(k.parameters(), q.parameters()):
        slow.data.mul_(0.99).add_(fast.data, alpha=0.01)
