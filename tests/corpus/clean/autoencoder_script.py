import torch
from torch import nn

torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(20, 8), nn.ReLU(), nn.Linear(8, 3))
decoder = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 20))
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-3)
history = []
for epoch in range(4):
    for x in torch.rand(3, 16, 20):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(decoder(encoder(x)), x)
        loss.backward()
        optimizer.step()
        history.append(loss.item())
with torch.no_grad():
    codes = encoder(torch.rand(5, 20))
print(codes.mean().item(), sum(history) / len(history))
