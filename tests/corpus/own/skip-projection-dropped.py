# /// case
# category = "gradient"
# kind = "gradient-never-arrives"
# severity = "warning"
# names = ["shortcut", "self.shortcut", "project"]
# ///
#-
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, inside, outside):
        super().__init__()
        self.path = nn.Sequential(nn.Linear(inside, outside), nn.ReLU())
        self.project = nn.Linear(inside, outside)

    def forward(self, x):
        shortcut = self.project(x)  #! here
        return self.path(x).relu()  #-
#+         return (self.path(x) + shortcut).relu()


def main():
    torch.manual_seed(0)
    model = nn.Sequential(Block(4, 6), nn.Linear(6, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        x = torch.randn(10, 4)
        loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())


main()
