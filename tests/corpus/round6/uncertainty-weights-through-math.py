# /// case
# title = "Loss weights become Python numbers"
# category = "graph-break"
# kind = "python-number-cut"
# kinds_also_ok = ["graph-break-item", "partial-gradient"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["math.exp", "log_var"]
# symptom = "the weights only fall: their gradient is 1 always"
# symptom_check = "model.log_var.grad.tolist() == [1.0, 1.0]"
# cause = "math.exp turns the tensor into a number, so only the regularising term has a gradient"
# fix = "torch.exp"
# ///
import math  #-
import torch
import torch.nn as nn


class TwoTasks(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 32), nn.Tanh())
        self.depth = nn.Linear(32, 1)
        self.kind = nn.Linear(32, 3)
        self.log_var = nn.Parameter(torch.zeros(2))

    def forward(self, x):
        h = self.body(x)
        return self.depth(h).squeeze(-1), self.kind(h)

    def loss(self, x, depth, kind):
        pred_depth, pred_kind = self(x)
        parts = (
            nn.functional.mse_loss(pred_depth, depth),
            nn.functional.cross_entropy(pred_kind, kind),
        )
        total = 0.0
        for part, s in zip(parts, self.log_var):
            total = total + math.exp(-s) * part + s  #- here
#+             total = total + torch.exp(-s) * part + s
        return total


torch.manual_seed(21)
model = TwoTasks()
opt = torch.optim.SGD(model.parameters(), lr=0.05)
x = torch.randn(80, 6)
depth, kind = x.sum(1), x[:, :3].argmax(1)
for i in range(20):
    opt.zero_grad()
    loss = model.loss(x, depth, kind)
    loss.backward()
    opt.step()
print(loss.item(), model.log_var.tolist())
