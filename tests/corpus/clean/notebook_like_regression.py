# %% data
import torch
from torch import nn

torch.manual_seed(0)
x = torch.linspace(-2, 2, 60).unsqueeze(1)
y = x.pow(3) - x + 0.1 * torch.randn_like(x)
# %% model
model = nn.Sequential(nn.Linear(1, 24), nn.SiLU(), nn.Linear(24, 1))
model
# %% train
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
losses = []
for i in range(12):
    pred = model(x)
    loss = ((pred - y) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    losses.append(float(loss.detach()))
# %% look
model.eval()
with torch.no_grad():
    fit = model(x)
curve = fit.squeeze(1).numpy()
print(curve.max(), losses[0] > losses[-1])
