# /// case
# title = "Update gate saturated by its bias"
# category = "vanishing-exploding"
# kind = "saturated-activation"
# severity = "warning"
# names = ["gate", "bias", "forget_bias"]
# difficulty = "hard"
# symptom = "Hidden state stays at zero, candidate weights get gradients of about 1e-9; loss does not move."
# symptom_check = "max(g for _, g in log) < 1e-6"
# cause = "The bias is set to +20 with the intention 'remember at the start'; sigmoid(20) is 1 to 2e-9, the cell never writes and the gate has no gradient."
# fix = "Use a moderate bias (1)."
# evidence = [{ url = "https://github.com/mukul-rathi/deep-learning-tutorials/issues/2" }]
# ///
"""Minimal gated recurrent cell on the adding problem."""
import torch
from torch import nn


class MinimalGatedUnit(nn.Module):
    def __init__(self, n_in, n_hidden, forget_bias):
        super().__init__()
        self.gate = nn.Linear(n_in + n_hidden, n_hidden)
        self.cand = nn.Linear(n_in + n_hidden, n_hidden)
        nn.init.constant_(self.gate.bias, forget_bias)  #! here

    def forward(self, x):
        h = x.new_zeros(x.shape[0], self.gate.out_features)
        for x_t in x.unbind(1):
            f = torch.sigmoid(self.gate(torch.cat([x_t, h], 1)))  #! here
            c = torch.tanh(self.cand(torch.cat([x_t, f * h], 1)))
            h = f * h + (1 - f) * c  #! also
        return h


class AddingModel(nn.Module):
    def __init__(self, forget_bias):
        super().__init__()
        self.cell = MinimalGatedUnit(2, 24, forget_bias)
        self.out = nn.Linear(24, 1)

    def forward(self, x):
        return self.out(self.cell(x))


def adding_batch(n, length=8):
    values = torch.rand(n, length)
    marks = torch.zeros(n, length)
    for row in marks:
        row[torch.randperm(length)[:2]] = 1
    return torch.stack([values, marks], -1), (values * marks).sum(1, keepdim=True)


torch.manual_seed(0)
model = AddingModel(forget_bias=20.0)  #- here
#+ model = AddingModel(forget_bias=1.0)
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
log = []
for step in range(40):
    x, y = adding_batch(32)
    loss = nn.functional.mse_loss(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    log.append((loss.item(), model.cell.gate.weight.grad.abs().max().item()))
print(log[0], log[-1])
