import torch
from torch import nn


class SeriesLSTM(nn.Module):
    def __init__(self, inputs=3, hidden_dim=8, batch=4):
        super().__init__()
        self.lstm = nn.LSTM(inputs, hidden_dim, batch_first=True)
        self.linear = nn.Linear(hidden_dim, 1)
        self.hidden = (torch.zeros(1, batch, hidden_dim), torch.zeros(1, batch, hidden_dim))

    def forward(self, x):
        out, hidden = self.lstm(x, self.hidden)
        self.hidden = tuple(h.detach() for h in hidden)
        return self.linear(out[:, -1])


torch.manual_seed(2)
model = SeriesLSTM()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
series = torch.randn(4, 30, 3)
for start in range(0, 30, 6):
    chunk = series[:, start : start + 6]
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(chunk), chunk.sum((1, 2)).unsqueeze(1))
    loss.backward()
    optimizer.step()
