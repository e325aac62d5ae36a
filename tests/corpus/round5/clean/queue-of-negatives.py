import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(9)


class Queue(nn.Module):
    def __init__(self, size, dim):
        super().__init__()
        self.register_buffer("keys", F.normalize(torch.randn(size, dim), dim=1))
        self.register_buffer("at", torch.zeros((), dtype=torch.long))

    @torch.no_grad()
    def push(self, new):
        i = int(self.at)
        self.keys[i:i + len(new)] = new
        self.at.copy_((self.at + len(new)) % len(self.keys))


encoder, key_encoder = nn.Linear(10, 8), nn.Linear(10, 8)
key_encoder.load_state_dict(encoder.state_dict())
key_encoder.requires_grad_(False)
queue = Queue(64, 8)
optimizer = torch.optim.SGD(encoder.parameters(), lr=0.1)
for step in range(12):
    x = torch.randn(16, 10)
    q = F.normalize(encoder(x), dim=1)
    with torch.no_grad():
        k = F.normalize(key_encoder(x + 0.1 * torch.randn_like(x)), dim=1)
    logits = torch.cat([(q * k).sum(1, keepdim=True), q @ queue.keys.clone().T], 1) / 0.2
    loss = F.cross_entropy(logits, torch.zeros(16, dtype=torch.long))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for a, b in zip(key_encoder.parameters(), encoder.parameters()):
            a.lerp_(b, 0.01)
    queue.push(k)
print(loss.item())
