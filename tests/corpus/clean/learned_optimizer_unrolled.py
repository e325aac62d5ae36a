import torch
from torch import nn

torch.manual_seed(0)


class LearnedRule(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.out = nn.LSTMCell(1, 8), nn.Linear(8, 1)

    def forward(self, g, state):
        h, c = self.cell(g.view(-1, 1), state)
        return 0.1 * self.out(h).view(g.shape), (h, c)


rule = LearnedRule()
meta = torch.optim.Adam(rule.parameters(), lr=5e-3)
for episode in range(4):
    W, y = torch.randn(8, 4), torch.randn(8)
    theta = torch.zeros(4, requires_grad=True)
    state = None
    total = 0.0
    for t in range(12):
        loss = (W @ theta - y).pow(2).mean()
        total = total + loss
        (g,) = torch.autograd.grad(loss, theta, retain_graph=True)
        update, state = rule(g.detach(), state)
        theta = theta + update
        if (t + 1) % 6 == 0:
            meta.zero_grad()
            total.backward()
            meta.step()
            theta = theta.detach().requires_grad_()
            state = tuple(s.detach() for s in state)
            total = 0.0
    print(episode, loss.item())
