import torch
from torch import nn

torch.manual_seed(6)


class Trainer:
    def __init__(self):
        self.net = nn.GRU(3, 10, batch_first=True)
        self.head = nn.Linear(10, 2)
        params = [*self.net.parameters(), *self.head.parameters()]
        self.opt = torch.optim.Adam(params, lr=1e-3)

    def losses(self, x, y):
        track = self.head(self.net(x)[0])
        smooth = torch.stack([(path[1:] - path[:-1]).pow(2).sum() for path in track])
        return {"fit": (track - y).pow(2).mean(), "smooth": smooth.mean()}

    def step(self, x, y):
        losses = self.losses(x, y)
        self.opt.zero_grad()
        (losses["fit"] + 0.1 * losses["smooth"]).backward()
        self.opt.step()
        return losses


trainer = Trainer()
for _ in range(5):
    losses = trainer.step(torch.randn(4, 7, 3), torch.randn(4, 7, 2))
print({k: v.item() for k, v in losses.items()})
