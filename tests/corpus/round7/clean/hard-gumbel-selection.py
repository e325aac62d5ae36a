import torch
import torch.nn as nn
import torch.nn.functional as F


class FeatureSelector(nn.Module):
    def __init__(self, n_in, n_keep):
        super().__init__()
        self.logits = nn.Parameter(0.01 * torch.randn(n_keep, n_in))
        self.net = nn.Sequential(nn.Linear(n_keep, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, x, tau):
        if self.training:
            choice = F.gumbel_softmax(self.logits, tau=tau, hard=True, dim=-1)
        else:
            choice = F.one_hot(self.logits.argmax(-1), x.shape[1]).to(x)
        return self.net(x @ choice.T).squeeze(1)


torch.manual_seed(108)
x = torch.randn(200, 8)
y = x[:, 2] - 2 * x[:, 5]
model = FeatureSelector(8, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
tau = 2.0
for epoch in range(5):
    model.train()
    for rows in torch.randperm(200).split(50):
        loss = F.mse_loss(model(x[rows], tau), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    tau = max(0.5, tau * 0.8)
    model.eval()
    with torch.no_grad():
        print(epoch, F.mse_loss(model(x, tau), y).item(), model.logits.argmax(-1).tolist())
