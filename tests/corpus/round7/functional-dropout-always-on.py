# /// case
# title = "Functional dropout does not follow the module's mode"
# category = "mode"
# kind = "functional-dropout-ignores-mode"
# kinds_also_ok = ["dropout-in-eval"]
# severity = "warning"
# names = ["dropout", "training"]
# symptom = "two evaluations of the same input differ"
# symptom_check = "not torch.equal(model(inputs), model(inputs))"
# cause = "training=True is the default of F.dropout"
# fix = "training=self.training"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class ResidualMLP(nn.Module):
    def __init__(self, dim, depth, out, p=0.15):
        super().__init__()
        self.p = p
        self.inner = nn.ModuleList(nn.Linear(dim, dim) for _ in range(depth))
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(depth))
        self.out = nn.Linear(dim, out)

    def forward(self, x):
        for norm, layer in zip(self.norms, self.inner):
            h = F.gelu(layer(norm(x)))
            x = x + F.dropout(h, p=self.p)  #- here
#+             x = x + F.dropout(h, p=self.p, training=self.training)
        return self.out(x)


def evaluate(model, inputs, targets):
    model.eval()
    with torch.inference_mode():
        return F.mse_loss(model(inputs), targets).item()  #! also


torch.manual_seed(83)
inputs = torch.randn(64, 8)
targets = torch.stack([inputs[:, 0] * inputs[:, 1], inputs[:, 2].cos()], dim=1)
model = ResidualMLP(8, depth=3, out=2)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
curve = []
for epoch in range(4):
    model.train()
    for rows in torch.randperm(64).split(16):
        optimizer.zero_grad(set_to_none=True)
        F.mse_loss(model(inputs[rows]), targets[rows]).backward()
        optimizer.step()
    curve.append(evaluate(model, inputs, targets))
print(curve)
