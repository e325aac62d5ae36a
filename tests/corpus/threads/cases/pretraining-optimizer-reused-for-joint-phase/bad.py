import torch
from torch import nn

torch.manual_seed(5)
encoder, decoder = nn.Linear(10, 4), nn.Linear(4, 10)
opt = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-2)
data = torch.randn(64, 10)
labels = data.sum(1, keepdim=True)

for _ in range(10):
    opt.zero_grad()
    nn.functional.mse_loss(decoder(torch.tanh(encoder(data))), data).backward()
    opt.step()

regressor = nn.Linear(4, 1)
nn.init.xavier_normal_(regressor.weight)
start = regressor.weight.detach().clone()
for _ in range(10):
    opt.zero_grad()
    loss = nn.functional.mse_loss(regressor(torch.tanh(encoder(data))), labels)
    loss.backward()
    opt.step()
print(loss.item())
