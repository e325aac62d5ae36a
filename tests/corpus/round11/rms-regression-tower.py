# /// case
# title = "The backward of the RMS norm treats the normaliser as a constant"
# category = "function"
# kind = "custom-backward-missing-term"
# kinds_also_ok = ["wrong-custom-backward", "incorrect-gradient", "backward-ignores-normaliser"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["grad_x", "reciprocal", "inner"]
# symptom = "gradcheck fails; the gradient of x has a component along x that it must not have"
# symptom_check = "not torch.autograd.gradcheck(lambda a, w: FusedRMSNorm.apply(a, w, 1e-5), (torch.randn(3, 4, dtype=torch.float64, requires_grad=True), torch.ones(4, dtype=torch.float64, requires_grad=True)), raise_exception=False)"
# cause = "The reciprocal depends on x, and its derivative is left out."
# fix = "subtract normed * mean(inner * normed)"
# ///
import torch
from torch import nn
import torch.nn.functional as F
from torch.autograd.function import once_differentiable


class FusedRMSNorm(torch.autograd.Function):
    """Keeps one reciprocal for every row instead of the intermediate tensors."""

    @staticmethod
    def forward(ctx, x, weight, eps):
        reciprocal = torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + eps)
        ctx.save_for_backward(x, weight, reciprocal)
        return x * reciprocal * weight

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):  #! also
        x, weight, reciprocal = ctx.saved_tensors
        normed = x * reciprocal
        grad_weight = (grad_output * normed).flatten(0, -2).sum(dim=0)
        inner = grad_output * weight  #! also
        grad_x = reciprocal * inner  #- here
#+         grad_x = reciprocal * (inner - normed * (inner * normed).mean(dim=-1, keepdim=True))
        return grad_x, grad_weight, None  #! also


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        return FusedRMSNorm.apply(x, self.weight, self.eps)


class FeedForward(nn.Module):
    def __init__(self, dim, expansion=2):
        super().__init__()
        self.norm = RMSNorm(dim)
        self.gate = nn.Linear(dim, expansion * dim, bias=False)
        self.up = nn.Linear(dim, expansion * dim, bias=False)
        self.down = nn.Linear(expansion * dim, dim, bias=False)

    def forward(self, x):
        h = self.norm(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class RatingTower(nn.Module):
    def __init__(self, features, dim=20, depth=3):
        super().__init__()
        self.lift = nn.Linear(features, dim)
        self.layers = nn.Sequential(*(FeedForward(dim) for _ in range(depth)))
        self.final = RMSNorm(dim)
        self.out = nn.Linear(dim, 1)

    def forward(self, x):
        return self.out(self.final(self.layers(self.lift(x)))).squeeze(-1)


def ratings(count, features=8):
    x = torch.randn(count, features)
    score = 3.0 + torch.tanh(x[:, 0] * x[:, 1]) + 0.5 * (x[:, 2] > 0).float() - 0.3 * x[:, 3]
    return x, (score + 0.1 * torch.randn(count)).clamp(1, 5)


def step_factory(model, optimizer, scheduler):
    def step(x, y):
        loss = F.huber_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        return loss.item()

    return step


torch.manual_seed(71)
model = RatingTower(8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
scheduler = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=300, power=1.0)
step = step_factory(model, optimizer, scheduler)
x, y = ratings(1000)
curve = [step(x[rows], y[rows]) for _ in range(15) for rows in torch.randperm(1000).split(50)]
with torch.no_grad():
    test_x, test_y = ratings(400)
    error = F.l1_loss(model(test_x), test_y).item()
print(f"huber {curve[0]:.4f} -> {sum(curve[-20:]) / 20:.4f}, test mae {error:.4f}")
