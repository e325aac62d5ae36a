import torch
from torch import nn

torch.manual_seed(12)
torch.set_num_threads(1)


class Forecaster(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.lstm = nn.LSTM(1, hidden, num_layers=1)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x, state=None):
        h, state = self.lstm(x, state)
        return self.out(h), state


def load_curve(length=400, households=6):
    t = torch.arange(length)[:, None] + torch.randint(0, 24, (households,))
    daily = torch.sin(2 * torch.pi * t / 24)
    weekly = 0.5 * torch.sin(2 * torch.pi * t / 168)
    return (daily + weekly + 0.05 * torch.randn(length, households)).unsqueeze(-1)


def detach_(state):
    for s in state:
        s.detach_()
    return state


def windows(series, k1):
    for i in range(0, len(series) - 1, k1):
        j = min(i + k1, len(series) - 1)
        yield series[i:j], series[i + 1:j + 1]


series = load_curve()
train_series, test_series = series[:320], series[320:]
model = Forecaster()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = nn.MSELoss()

for epoch in range(10):
    state = None
    epoch_loss, count = 0.0, 0
    for x, y in windows(train_series, k1=32):
        pred, state = model(x, state)
        loss = criterion(pred, y)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        state = detach_(state)
        epoch_loss += loss.item()
        count += 1
    if epoch % 3 == 0:
        print("epoch", epoch, "mse", epoch_loss / count)

model.eval()
with torch.no_grad():
    _, state = model(train_series)
    pred, _ = model(test_series[:-1], state)
    print("test mse", criterion(pred, test_series[1:]).item())
