# /// case
# category = "graph"
# kind = "graph-retained-accumulator"
# severity = "warning"
# names = ["running", "epoch_loss"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)


class Fit:
    def __init__(self):
        self.model = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1))
        self.opt = torch.optim.Adam(self.model.parameters(), lr=1e-2)
        self.epoch_loss = 0.0

    def epoch(self, data):
        self.epoch_loss = 0.0
        for x in data:
            loss = (self.model(x) - x.sum(1, keepdim=True)).pow(2).mean()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.epoch_loss += loss / len(data)  #- here
#+             self.epoch_loss += loss.item() / len(data)
        return self.epoch_loss


fit = Fit()
for _ in range(2):
    print(float(fit.epoch(torch.randn(8, 5, 3))))
