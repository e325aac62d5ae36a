import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(12)


class Selector(nn.Module):
    def __init__(self, n, k):
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(k, n))
        self.head = nn.Linear(k, 1)

    def forward(self, x, tau):
        if self.training:
            choice = F.gumbel_softmax(self.logits, tau=tau, hard=True)
        else:
            choice = F.one_hot(self.logits.argmax(1), x.shape[1]).float()
        return self.head(x @ choice.T).squeeze(1)


model = Selector(10, 3)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-2)
for step in range(40):
    model.train()
    x = torch.randn(64, 10)
    loss = (model(x, tau=max(0.3, 1 - step / 40)) - 2 * x[:, 2] + x[:, 7]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
model.eval()
with torch.no_grad():
    print(loss.item(), (model(x, 0.3) - 2 * x[:, 2] + x[:, 7]).square().mean().item())
