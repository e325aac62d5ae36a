# /// case
# title = "Gradients are clipped after the step"
# category = "optimizer"
# kind = "clip-after-step"
# kinds_also_ok = ["clip-without-effect"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["clip_grad_norm_", "step"]
# symptom = "the step takes the unclipped gradient"
# symptom_check = "moved[0] > 0.1"
# cause = "the call comes after optimizer.step"
# fix = "clip between backward and step"
# ///
import torch
import torch.nn as nn


class SumRNN(nn.Module):
    def __init__(self, hidden=16):
        super().__init__()
        self.rnn = nn.RNN(1, hidden, nonlinearity="relu", batch_first=True)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        states, _ = self.rnn(x)
        return self.out(states[:, -1])


def batches(n, size=16, length=15):
    for _ in range(n):
        x = torch.rand(size, length, 1) * 4
        yield x, x.sum(dim=1)


def parameters_to_vector(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


torch.manual_seed(63)
model = SumRNN()
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.002)
moved = []
for x, y in batches(10):
    before = parameters_to_vector(model)
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()  #! also
#+     norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
    optimizer.step()  #! also
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)  #- here
    moved.append((parameters_to_vector(model) - before).norm().item())
    print(f"loss {loss.item():.3f}  grad norm {norm.item():.3f}  update {moved[-1]:.4f}")
