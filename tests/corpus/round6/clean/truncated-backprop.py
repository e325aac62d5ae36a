import torch
import torch.nn as nn


def detach(state):
    return tuple(s.detach() for s in state)


torch.manual_seed(7)
cell, read = nn.LSTMCell(3, 20), nn.Linear(20, 3)
opt = torch.optim.RMSprop([*cell.parameters(), *read.parameters()], lr=2e-3)
series = torch.cumsum(torch.randn(101, 8, 3) * 0.1, 0)
for epoch in range(2):
    state = (torch.zeros(8, 20), torch.zeros(8, 20))
    for start in range(0, 100, 10):
        state = detach(state)
        loss = 0.0
        for t in range(start, start + 10):
            state = cell(series[t], state)
            loss = loss + nn.functional.mse_loss(read(state[0]), series[t + 1])
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item() / 10)
