# /// case
# category = "wiring"
# kind = "parameters-replaced-after-optimizer"
# severity = "warning"
# names = ["optimizer", "head", "model"]
# ///
#-
import torch
from torch import nn


def build(classes):
    model = nn.Sequential()
    model.add_module("body", nn.Linear(6, 16))
    model.add_module("act", nn.ReLU())
    model.add_module("head", nn.Linear(16, classes))
    return model, torch.optim.SGD(model.parameters(), lr=0.1)  #! here


def retarget(model, classes):
    model.head = nn.Linear(model.head.in_features, classes)  #! also
    return model


torch.manual_seed(0)
model, optimizer = build(10)
model = retarget(model, 3)
#+ optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    x = torch.randn(16, 6)
    loss = nn.functional.cross_entropy(model(x), x[:, :3].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
