import torch
import torch.nn as nn
import torch.nn.functional as F


def detach(state):
    return tuple(detach(s) for s in state) if isinstance(state, tuple) else state.detach()


class SignalModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(1, 12, num_layers=2, batch_first=True, dropout=0.1)
        self.out = nn.Linear(12, 1)

    def forward(self, x, state):
        h, state = self.lstm(x, state)
        return self.out(h), state


torch.manual_seed(121)
signal = torch.sin(torch.arange(201) * 0.3).repeat(4, 1) + 0.1 * torch.randn(4, 201)
model = SignalModel()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(2):
    state = None
    for start in range(0, 200, 25):
        x = signal[:, start:start + 25].unsqueeze(-1)
        y = signal[:, start + 1:start + 26].unsqueeze(-1)
        if state is not None:
            state = detach(state)
        prediction, state = model(x, state)
        loss = F.mse_loss(prediction, y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    print(epoch, loss.item())
