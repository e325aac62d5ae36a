import torch
import torch.nn as nn
import torch.nn.functional as F


class Selector(nn.Module):
    """Chooses k columns of a table while the predictor learns from them."""

    def __init__(self, columns, k=3):
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(k, columns))

    def forward(self, x, temperature):
        if self.training:
            choice = F.gumbel_softmax(self.logits, tau=temperature, hard=True)
        else:
            choice = F.one_hot(self.logits.argmax(1), x.shape[1]).float()
        return x @ choice.T


torch.manual_seed(30)
x = torch.randn(150, 12)
y = (x[:, 2] + x[:, 7] > 0).long()
selector, predictor = Selector(12), nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam([
    {"params": selector.parameters(), "lr": 5e-2},
    {"params": predictor.parameters(), "lr": 1e-2},
])
for epoch in range(5):
    selector.train()
    temperature = max(0.5, 2.0 - 0.4 * epoch)
    for rows in torch.randperm(150).split(30):
        loss = F.cross_entropy(predictor(selector(x[rows], temperature)), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    selector.eval()
    with torch.no_grad():
        print(epoch, loss.item(), (predictor(selector(x, 1.0)).argmax(1) == y).float().mean().item())
