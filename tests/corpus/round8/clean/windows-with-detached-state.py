import torch
import torch.nn as nn


class Wave(nn.Module):
    def __init__(self, hidden=20):
        super().__init__()
        self.rnn = nn.GRU(1, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x, state):
        h, state = self.rnn(x, state)
        return self.out(h), state


def repackage(state):
    return None if state is None else state.detach()


torch.manual_seed(4)
t = torch.linspace(0, 30, 241)
series = torch.stack([torch.sin(t * w) for w in (0.8, 1.0, 1.3, 1.7)]).unsqueeze(-1)
net = Wave()
optimizer = torch.optim.RMSprop(net.parameters(), lr=3e-3)
window = 30
for epoch in range(3):
    state, losses = None, []
    for begin in range(0, 240, window):
        x, y = series[:, begin:begin + window], series[:, begin + 1:begin + window + 1]
        output, state = net(x, repackage(state))
        loss = nn.functional.mse_loss(output[:, :y.shape[1]], y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(net.parameters(), 0.5)
        optimizer.step()
        losses.append(loss.detach())
    print(epoch, torch.stack(losses).mean().item())
