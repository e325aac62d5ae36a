# /// case
# title = "The implicit layer's backward solves with the Jacobian instead of its transpose"
# category = "function"
# kind = "wrong-custom-backward"
# kinds_also_ok = ["missing-transpose-in-backward", "incorrect-gradient", "gradcheck-fails", "implicit-gradient-wrong"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["FixedPoint", "backward", "jacobian"]
# symptom = "the gradients of the layer differ from finite differences, and training still goes on"
# symptom_check = "not torch.autograd.gradcheck(FixedPoint.apply, (0.2 * torch.randn(4, 4, dtype=torch.double).requires_grad_(), torch.randn(3, 4, dtype=torch.double, requires_grad=True)), raise_exception=False)"
# cause = "the adjoint system has the transposed matrix (I - J)^T, and the code solves with I - J."
# fix = "transpose the Jacobian in the solve"
# ///
import torch
from torch import nn
import torch.nn.functional as F
from torch.autograd.function import once_differentiable


class FixedPoint(torch.autograd.Function):
    """z = tanh(W z + u), differentiated by the implicit function theorem."""

    @staticmethod
    def forward(ctx, weight, injected):
        z = torch.zeros_like(injected)
        for _ in range(100):
            following = torch.tanh(z @ weight.T + injected)
            if (following - z).abs().max() < 1e-12:
                break
            z = following
        ctx.save_for_backward(weight, following)
        return following

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        weight, z = ctx.saved_tensors
        slope = 1 - z.square()
        jacobian = slope[:, :, None] * weight  #! also
        identity = torch.eye(len(weight), dtype=weight.dtype)
        adjoint = torch.linalg.solve(identity - jacobian, grad_output[:, :, None])  #- here
#+         adjoint = torch.linalg.solve(identity - jacobian.mT, grad_output[:, :, None])
        delta = slope * adjoint.squeeze(2)  #! also
        return delta.T @ z, delta


class EquilibriumClassifier(nn.Module):
    def __init__(self, inputs, states, classes, contraction=0.9):
        super().__init__()
        self.inject = nn.Linear(inputs, states)
        self.raw = nn.Parameter(torch.randn(states, states) / states ** 0.5)
        self.readout = nn.Linear(states, classes)
        self.contraction = contraction

    @property
    def weight(self):
        return self.contraction * self.raw / torch.linalg.matrix_norm(self.raw)

    def forward(self, x):
        return self.readout(FixedPoint.apply(self.weight, self.inject(x)))  #! also


def spirals(count, arms=3):
    arm = torch.randint(arms, (count,))
    radius = torch.rand(count).sqrt()
    angle = 4 * radius + arm * 2 * torch.pi / arms + 0.15 * torch.randn(count)
    return torch.stack([radius * angle.cos(), radius * angle.sin()], 1), arm


def minibatches(x, y, size):
    while True:
        for index in torch.randperm(len(x)).split(size):
            yield x[index], y[index]


torch.manual_seed(91)
x, y = spirals(300)
test_x, test_y = spirals(200)
model = EquilibriumClassifier(2, 24, 3)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
stream = minibatches(x, y, 60)
losses = []
for iteration in range(160):
    inputs, labels = next(stream)
    loss = F.cross_entropy(model(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
with torch.no_grad():
    accuracy = (model(test_x).argmax(1) == test_y).float().mean().item()
print(f"loss {losses[0]:.4f} -> {losses[-1]:.4f}, accuracy {accuracy:.3f}")
