# /// case
# title = "The gradient of the thresholds is summed over everything"
# category = "function"
# kind = "wrong-gradient-shape"
# kinds_also_ok = ["gradient-reduced-over-all", "invalid-gradient-shape"]
# severity = "error"
# names = ["SoftThreshold", "backward", "threshold"]
# symptom = "backward raises"
# raises = "RuntimeError"
# raises_message = "returned an invalid gradient at index 1"
# cause = "The threshold has one entry a coefficient; .sum() gives one number, as for a scalar threshold."
# fix = "sum over the batch only, .sum(0)"
# ///
import torch
from torch import nn


class SoftThreshold(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, threshold):
        keep = x.abs() > threshold
        ctx.save_for_backward(keep, x.sign())
        return torch.where(keep, x - threshold * x.sign(), torch.zeros_like(x))  #! also

    @staticmethod
    def backward(ctx, grad):
        keep, sign = ctx.saved_tensors
        passed = torch.where(keep, grad, torch.zeros_like(grad))
        return passed, -(passed * sign).sum()  #- here
#+         return passed, -(passed * sign).sum(0)


class UnrolledISTA(nn.Module):
    def __init__(self, operator, layers):
        super().__init__()
        step = 1 / torch.linalg.matrix_norm(operator, 2) ** 2
        self.analysis = nn.Parameter(step * operator.T)
        self.memory = nn.Parameter(torch.eye(operator.shape[1]) - step * operator.T @ operator)
        self.thresholds = nn.ParameterList(0.05 * torch.ones(operator.shape[1]) for _ in range(layers))

    def forward(self, y):
        drive = y @ self.analysis.T
        x = torch.zeros_like(drive)
        for threshold in self.thresholds:
            x = SoftThreshold.apply(x @ self.memory.T + drive, threshold)
        return x


def sparse_signals(count, size, density):
    return torch.randn(count, size) * (torch.rand(count, size) < density)


torch.manual_seed(67)
operator = torch.randn(16, 32) / 4
network = UnrolledISTA(operator, layers=5)
optimizer = torch.optim.Adam(network.parameters(), lr=2e-3)
for step in range(16):
    signals = sparse_signals(40, 32, 0.1)
    recovered = network(signals @ operator.T)
    loss = (recovered - signals).square().sum(1).mean()
    optimizer.zero_grad()
    loss.backward()  #! also
    optimizer.step()
    if step % 5 == 0:
        print(step, round(loss.item(), 4))
