# /// case
# category = "graph"
# kind = "graph-retained-in-container"
# severity = "warning"
# names = ["val"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)


class Fit:
    def __init__(self, net):
        self.net = net
        self.opt = torch.optim.SGD(net.parameters(), lr=0.05)
        self.val_curve = []

    def validate(self, x, y):
        self.net.eval()
        loss = nn.functional.mse_loss(self.net(x), y)
        self.net.train()
        return loss

    def run(self, data, held, epochs):
        for _ in range(epochs):
            for x, y in data:
                self.opt.zero_grad()
                nn.functional.mse_loss(self.net(x), y).backward()
                self.opt.step()
            self.val_curve.append(self.validate(*held))  #- here
#+             self.val_curve.append(self.validate(*held).item())
        return [float(v) for v in self.val_curve]


data = [(torch.randn(8, 4), torch.randn(8, 1)) for _ in range(3)]
print(Fit(nn.Sequential(nn.Linear(4, 12), nn.Tanh(), nn.Linear(12, 1))).run(data, data[0], 6))
