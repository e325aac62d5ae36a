# /// case
# title = "The prediction is made outside of the closure"
# category = "retention"
# kind = "backward-twice"
# kinds_also_ok = ["graph-outside-closure"]
# severity = "error"
# names = ["pred", "closure"]
# symptom = "the second evaluation walks a freed graph"
# raises = "RuntimeError"
# raises_message = "backward through the graph a second time"
# cause = "the graph of pred is walked back by each evaluation"
# fix = "predict in the closure"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/111369", title = "torch.optim.LBFGS error" },
# ]
# ///
import torch
from torch import nn, optim

torch.manual_seed(0)
x = torch.rand(size=(100, 10))
y = x @ torch.rand(10, 1) + 0.05 * torch.randn(100, 1)


class LinearRegression(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.lin = nn.Linear(p, 1)

    def forward(self, x):
        return self.lin(x)


model = LinearRegression(x.size(1))
optimizer = optim.LBFGS(model.parameters(), lr=0.5)
criterion = nn.MSELoss()

for epoch in range(3):
    pred = model(x)  #- here

    def closure():
        optimizer.zero_grad()
#+         pred = model(x)
        loss = criterion(pred, y)
        loss.backward()  #! also
        return loss

    print(epoch, optimizer.step(closure).item())  #! also
