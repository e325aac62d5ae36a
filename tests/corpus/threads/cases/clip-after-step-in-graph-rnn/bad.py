import torch
import torch.nn as nn

torch.manual_seed(4)
rnn, read = nn.RNN(5, 10), nn.Linear(10, 5)
model = nn.ModuleList([rnn, read])
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
clip = 10
used = 0.0


def total_norm():
    return float(torch.stack([p.grad.norm() for p in model.parameters()]).norm())


for epoch in range(5):
    optimizer.zero_grad()
    seq = torch.randn(12, 4, 5) * 20
    states, _ = rnn(seq)
    loss = (read(states) - seq.roll(-1, 0)).pow(2).mean()
    loss.backward()
    used = max(used, total_norm())
    optimizer.step()
    nn.utils.clip_grad_norm_(model.parameters(), clip)
    print(epoch, loss.item())
