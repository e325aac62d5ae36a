# /// case
# title = "Recurrent weights are drawn with unit variance"
# category = "scale"
# kind = "exploding-gradient"
# kinds_also_ok = ["divergence", "nonfinite-gradient"]
# severity = "warning"
# names = ["reset_parameters", "normal_", "weight_hh"]
# symptom = "the gradient's norm is astronomic in the first step"
# symptom_check = "norms[0] > 1e6"
# cause = "the recurrence multiplies by a matrix of norm far above one"
# fix = "scale by one over the root of the hidden size"
# evidence = [
#     { url = "https://github.com/jihunchoi/recurrent-batch-normalization-pytorch/issues/5", title = "Not a number" },
# ]
# ///
import torch
from torch import nn


class SimpleCell(nn.Module):
    """Linear recurrence with a gate at the input."""

    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.hidden_size = hidden_size
        self.weight_ih = nn.Parameter(torch.empty(2 * hidden_size, input_size))
        self.weight_hh = nn.Parameter(torch.empty(hidden_size, hidden_size))
        self.bias = nn.Parameter(torch.zeros(2 * hidden_size))
        self.reset_parameters()

    def reset_parameters(self):
        for weight in (self.weight_ih, self.weight_hh):
            nn.init.normal_(weight)  #- here
#+             nn.init.uniform_(weight, -(self.hidden_size**-0.5), self.hidden_size**-0.5)

    def forward(self, x, h):
        gate, cand = (x @ self.weight_ih.T + self.bias).chunk(2, 1)
        return torch.sigmoid(gate) * torch.tanh(cand) + h @ self.weight_hh.T  #! also


class AddingModel(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.cell, self.out = SimpleCell(2, hidden), nn.Linear(hidden, 1)

    def forward(self, seq):
        h = seq.new_zeros(seq.shape[1], self.cell.hidden_size)
        for x in seq:
            h = self.cell(x, h)
        return self.out(h).squeeze(1)


def adding_problem(length, batch):
    values, marks = torch.rand(length, batch), torch.zeros(length, batch)
    for b in range(batch):
        marks[torch.randperm(length)[:2], b] = 1
    return torch.stack([values, marks], -1), (values * marks).sum(0)


torch.manual_seed(102)
model = AddingModel()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
norms = []
for step in range(4):
    seq, target = adding_problem(24, 16)
    loss = nn.functional.mse_loss(model(seq), target)
    optimizer.zero_grad()
    loss.backward()  #! also
    norms.append(float(nn.utils.get_total_norm([p.grad for p in model.parameters()])))
    optimizer.step()
print(norms)
