import torch
from torch import nn


class EarlyStopping:
    def __init__(self, patience=3):
        self.patience, self.bad, self.score, self.best = patience, 0, None, None

    def __call__(self, score, module):
        if self.score is None or score < self.score:
            self.score, self.bad = score, 0
            self.best = module.state_dict().copy()
        else:
            self.bad += 1
        return self.bad >= self.patience


torch.manual_seed(6)
net = nn.Linear(8, 1)
sgd = torch.optim.SGD(net.parameters(), lr=0.2)
train, valid = torch.randn(32, 8), torch.randn(32, 8)
stopper = EarlyStopping()
for epoch in range(20):
    sgd.zero_grad()
    (net(train).squeeze(1) - train[:, 0]).pow(2).mean().backward()
    sgd.step()
    with torch.no_grad():
        score = (net(valid).squeeze(1) - valid[:, 0]).pow(2).mean().item()
    if stopper(score, net):
        break
net.load_state_dict(stopper.best)
