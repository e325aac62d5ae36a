# /// case
# title = "LBFGS: the forward pass stands outside the closure"
# category = "uncovered"
# kind = "second-backward-freed-graph"
# kinds_also_ok = ["graph-built-once"]
# severity = "error"
# names = ["pred", "closure"]
# symptom = "RuntimeError: Trying to backward through the graph a second time"
# raises = "RuntimeError"
# raises_message = "backward through the graph a second time"
# cause = "pred's graph is freed in the closure's first call"
# fix = "forward in the closure"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/111369", title = "torch.optim.LBFGS error" },
# ]
# ///
import torch
from torch import nn, optim


class LinearRegression(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.lin = nn.Linear(p, 1)

    def forward(self, inp):
        return self.lin(inp).tanh()


torch.manual_seed(0)
x, y = torch.rand(100, 10), torch.rand(100, 1)
model = LinearRegression(x.size(1))
optimizer = optim.LBFGS(model.parameters())
criterion = nn.MSELoss()
pred = model(x)  #- here


def closure():
    optimizer.zero_grad()
#+     pred = model(x)
    loss = criterion(pred, y.view(pred.shape))  #! also
    loss.backward()  #! here
    return loss


optimizer.step(closure)  #! also
