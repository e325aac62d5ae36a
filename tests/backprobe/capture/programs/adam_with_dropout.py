import torch
from torch import nn

torch.manual_seed(7)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.4), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
x, y = torch.randn(12, 6), torch.randn(12, 1)
for step in range(5):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    print(step, loss.item().hex())
for name, p in model.named_parameters():
    print(name, p.detach().numpy().tobytes().hex(), p.grad.numpy().tobytes().hex(), p._version)
print(torch.rand(3).tolist(), torch.get_rng_state().sum().item())
