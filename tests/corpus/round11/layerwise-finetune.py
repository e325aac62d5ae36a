# /// case
# title = "All gradient hooks of the layerwise decay use the factor of the last layer"
# category = "hook"
# kind = "late-binding-closure-in-hook"
# kinds_also_ok = ["hook-closure-late-binding", "loop-variable-captured", "hook-wrong-scale"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["factor", "grad", "register_hook", "lambda"]
# symptom = "the lower layers move as much as with no decay at all"
# symptom_check = "moved[0] > 0.5 * moved[-1]"
# cause = "The lambda looks factor up when it is called, and by then it is decay ** 0."
# fix = "bind it by a default argument: lambda grad, factor=factor"
# ///
import torch
from torch import nn
import torch.nn.functional as F


class ResidualBlock(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.inner = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        return x + self.inner(self.norm(x))


class TabularEncoder(nn.Module):
    def __init__(self, features, dim=24, depth=5):
        super().__init__()
        self.stem = nn.Linear(features, dim)
        self.blocks = nn.ModuleList(ResidualBlock(dim) for _ in range(depth))

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return x


class LayerwiseDecay:
    """Damps the gradients of the lower blocks: decay ** (distance from the top)."""

    def __init__(self, encoder, decay):
        self.encoder = encoder
        self.decay = decay
        self.handles = []

    def __enter__(self):
        stages = [self.encoder.stem, *self.encoder.blocks]
        for depth, stage in enumerate(stages):
            factor = self.decay ** (len(stages) - 1 - depth)  #! also
            for parameter in stage.parameters():
                self.handles.append(parameter.register_hook(lambda grad: grad * factor))  #- here
#+                 self.handles.append(parameter.register_hook(lambda grad, factor=factor: grad * factor))
        return self

    def __exit__(self, *exc):
        for handle in self.handles:
            handle.remove()


def policies(count, shift=0.0):
    x = torch.randn(count, 10) + shift
    risk = x[:, 0] * x[:, 1] + torch.relu(x[:, 2] - shift) - 0.5 * x[:, 3]
    return x, risk + 0.3 * torch.randn(count)


def run(encoder, head, data, steps, lr):
    optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=lr, momentum=0.9)
    x, y = data
    for _ in range(steps):
        rows = torch.randint(0, len(y), (64,))
        loss = F.smooth_l1_loss(head(encoder(x[rows])).squeeze(-1), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()


def drift(before, encoder):
    with torch.no_grad():
        pairs = zip(before, [encoder.stem, *encoder.blocks])
        return [(old - nn.utils.parameters_to_vector(stage.parameters())).norm().item() for old, stage in pairs]


torch.manual_seed(90)
encoder = TabularEncoder(10)
pretraining = list(run(encoder, nn.Linear(24, 1), policies(2000), steps=200, lr=2e-2))
print(f"pretrain {pretraining[0]:.3f} -> {sum(pretraining[-20:]) / 20:.3f}")

stages = [encoder.stem, *encoder.blocks]
before = [nn.utils.parameters_to_vector(stage.parameters()).detach().clone() for stage in stages]
with LayerwiseDecay(encoder, decay=0.5) as damping:
    tuning = list(run(encoder, nn.Linear(24, 1), policies(200, shift=0.5), steps=100, lr=2e-2))
moved = drift(before, encoder)
print(f"finetune {tuning[0]:.3f} -> {sum(tuning[-20:]) / 20:.3f}")
print("moved", [round(value, 3) for value in moved])
