# /// case
# title = "The gradient of alpha lacks grad_output"
# category = "function"
# kind = "grad-output-not-used"
# kinds_also_ok = ["wrong-backward-formula", "chain-rule-missing-in-backward", "custom-function-wrong-gradient"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["grad_alpha", "grad_output", "alpha", "ClipFn"]
# symptom = "alpha falls whatever the loss says"
# symptom_check = "not torch.autograd.gradcheck(lambda x, a: ClipFn.apply(x, a).square().sum(), (torch.linspace(-1, 3, 9, dtype=torch.float64).requires_grad_(), torch.tensor(1.3, dtype=torch.float64, requires_grad=True)), raise_exception=False)"
# cause = "backward() returns the local derivative for alpha without multiplying by grad_output."
# fix = "multiply by grad_output before summing"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class ClipFn(torch.autograd.Function):
    """min(max(x, 0), alpha) with a learnable alpha."""

    @staticmethod
    def forward(ctx, x, alpha):
        ctx.save_for_backward(x, alpha)
        return torch.minimum(x.clamp(min=0), alpha)

    @staticmethod
    def backward(ctx, grad_output):
        x, alpha = ctx.saved_tensors
        inside = (x > 0) & (x < alpha)
        grad_x = grad_output * inside
        grad_alpha = (x >= alpha).to(x.dtype).mean().view_as(alpha)  #- here
#+         grad_alpha = (grad_output * (x >= alpha)).sum().view_as(alpha)
        return grad_x, grad_alpha  #! also


class RoundSTE(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


class PACT(nn.Module):
    def __init__(self, bits=4, alpha=1.5):
        super().__init__()
        self.levels = 2 ** bits - 1
        self.alpha = nn.Parameter(torch.tensor(alpha))

    def forward(self, x):
        clipped = ClipFn.apply(x, self.alpha)  #! also
        scale = self.levels / self.alpha.detach()
        return RoundSTE.apply(clipped * scale) / scale


class QuantMLP(nn.Module):
    def __init__(self, d_in=8, hidden=32, classes=3):
        super().__init__()
        self.fc1, self.act1 = nn.Linear(d_in, hidden), PACT()
        self.fc2, self.act2 = nn.Linear(hidden, hidden), PACT()
        self.fc3 = nn.Linear(hidden, classes)

    def forward(self, x):
        return self.fc3(self.act2(self.fc2(self.act1(self.fc1(x)))))


def batches(n_batches, size=64):
    teacher = torch.randn(8, 3, generator=torch.Generator().manual_seed(3))
    for _ in range(n_batches):
        x = 2 * torch.randn(size, 8)
        yield x, (x @ teacher).argmax(dim=1)


torch.manual_seed(15)
torch.set_num_threads(1)
model = QuantMLP()
alphas = [m.alpha for m in model.modules() if isinstance(m, PACT)]
weights = [p for p in model.parameters() if not any(p is a for a in alphas)]
optimizer = torch.optim.SGD([
    {"params": weights, "lr": 0.05},
    {"params": alphas, "lr": 0.01, "weight_decay": 1e-3},
], momentum=0.5)

trace = []
for step, (x, y) in enumerate(batches(200)):
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    trace.append((loss.item(), *[a.item() for a in alphas]))
    if step % 50 == 0:
        print("step %3d loss %.4f alpha %.3f %.3f" % (step, *trace[-1]))
