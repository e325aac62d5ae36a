import torch
import torch.nn as nn


class Memory(nn.Module):
    def __init__(self, nodes, dim):
        super().__init__()
        self.cell = nn.GRUCell(dim, dim)
        self.register_buffer("state", torch.zeros(nodes, dim))

    def forward(self, nodes, message):
        return self.cell(message, self.state[nodes])

    @torch.no_grad()
    def store(self, nodes, new):
        self.state[nodes] = new


torch.manual_seed(10)
memory, encode, score = Memory(12, 6), nn.Linear(3, 6), nn.Linear(6, 1)
opt = torch.optim.Adam([*memory.parameters(), *encode.parameters(), *score.parameters()], lr=1e-2)
for batch in range(5):
    nodes, event = torch.randperm(12)[:5], torch.randn(5, 3)
    new = memory(nodes, encode(event))
    loss = nn.functional.binary_cross_entropy_with_logits(score(new).squeeze(1), (event[:, 0] > 0).float())
    opt.zero_grad()
    loss.backward()
    opt.step()
    memory.store(nodes, new)
print(loss.item(), memory.state.norm().item())
