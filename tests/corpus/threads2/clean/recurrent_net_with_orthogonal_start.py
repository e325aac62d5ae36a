import torch
import torch.nn as nn


class Cell(nn.Module):
    def __init__(self, i, h):
        super().__init__()
        self.w_x, self.w_h = nn.Linear(i, h), nn.Linear(h, h, bias=False)
        nn.init.orthogonal_(self.w_h.weight)

    def forward(self, x, h):
        return torch.tanh(self.w_x(x) + self.w_h(h))


torch.manual_seed(48)
cell, out = Cell(2, 16), nn.Linear(16, 1)
params = [*cell.parameters(), *out.parameters()]
opt = torch.optim.RMSprop(params, lr=1e-3)
for step in range(5):
    seq = torch.rand(20, 12, 2)
    h = torch.zeros(12, 16)
    for x in seq:
        h = cell(x, h)
    loss = nn.functional.mse_loss(out(h).squeeze(1), seq[..., 0].mean(0))
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(params, 1.0)
    opt.step()
print(loss.item())
