import torch
from torch import nn

torch.manual_seed(55)
rnn, head = nn.LSTM(3, 10, batch_first=True), nn.Linear(10, 3)
opt = torch.optim.Adam([*rnn.parameters(), *head.parameters()], lr=1e-3)
stream = torch.randn(4, 41, 3)
for epoch in range(2):
    state = None
    for start in range(0, 40, 8):
        x, y = stream[:, start : start + 8], stream[:, start + 1 : start + 9]
        out, state = rnn(x, state)
        loss = (head(out) - y).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_([*rnn.parameters(), *head.parameters()], 0.5)
        opt.step()
        state = tuple(s.detach() for s in state)
