# /// case
# title = "The backward of a custom Function returns None for the clipping level, which is a parameter"
# category = "function"
# kind = "backward-returns-none-for-learned-input"
# kinds_also_ok = ["missing-gradient-in-custom-function", "learned-threshold-gets-no-gradient", "incomplete-backward"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["ClipAndRound", "backward", "level"]
# symptom = "the clipping levels have no gradient and keep their first value"
# symptom_check = "levels == [1.0, 1.0]"
# cause = "None as the second gradient says that the level has none; where x is clipped the derivative by the level is one."
# fix = "return the sum of grad where x >= level"
# ///
import torch
from torch import nn


class ClipAndRound(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, level, steps):
        ctx.save_for_backward(x, level)
        clipped = torch.minimum(x.clamp(min=0), level)
        return torch.round(clipped / level * steps) / steps * level

    @staticmethod
    def backward(ctx, grad):  #! also
        x, level = ctx.saved_tensors
        inside = (x > 0) & (x < level)
        return grad * inside, None, None  #- here
#+         return grad * inside, (grad * (x >= level)).sum().view_as(level), None


class QuantizedActivation(nn.Module):
    def __init__(self, bits=4, level=1.0):
        super().__init__()
        self.level = nn.Parameter(torch.tensor([level]))  #! also
        self.steps = 2 ** bits - 1

    def forward(self, x):
        return ClipAndRound.apply(x, self.level, self.steps)  #! also


def student_of(widths, bits):
    layers = []
    for inputs, outputs in zip(widths, widths[1:-1]):
        layers += [nn.Linear(inputs, outputs), QuantizedActivation(bits)]
    return nn.Sequential(*layers, nn.Linear(*widths[-2:]))


def groups(model, decay):
    levels = [p for name, p in model.named_parameters() if name.endswith("level")]
    weights = [p for name, p in model.named_parameters() if not name.endswith("level")]
    return [{"params": weights, "weight_decay": decay}, {"params": levels, "weight_decay": 0.0, "lr": 2e-2}]  #! also


torch.manual_seed(73)
teacher = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 3)).requires_grad_(False)
student = student_of([6, 32, 32, 3], bits=4)
optimizer = torch.optim.AdamW(groups(student, 1e-3), lr=4e-3)
for step in range(20):
    x = 2 * torch.randn(64, 6)
    loss = nn.functional.mse_loss(student(x), teacher(x))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
levels = [module.level.item() for module in student if isinstance(module, QuantizedActivation)]
print(loss.item(), levels)
