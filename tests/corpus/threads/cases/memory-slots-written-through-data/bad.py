import torch
from torch import nn

torch.manual_seed(3)
writer, reader = nn.Linear(6, 8), nn.Linear(8, 6)
optimizer = torch.optim.Adam([*writer.parameters(), *reader.parameters()], lr=1e-2)


def recall(sequence):
    slots = torch.zeros(sequence.size(0), 8)
    for t, item in enumerate(sequence):
        slots[t].data.copy_(writer(item))
    weights = torch.softmax(slots @ slots.t() / 8**0.5, dim=-1)
    return reader(weights @ slots)


for i in range(20):
    seq = torch.randn(5, 6)
    loss = (recall(seq) - seq).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
