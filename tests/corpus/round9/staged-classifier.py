# /// case
# title = "Layers that are unfrozen later are not in the optimizer, which was given the trainable ones only"
# category = "optimizer"
# kind = "parameter-not-in-optimizer"
# kinds_also_ok = ["unfrozen-parameters-not-in-optimizer", "optimizer-built-too-early", "parameters-added-after-optimizer"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["optimizer", "unfreeze_last", "filter"]
# symptom = "the unfrozen stages get gradients that are never used, and their weights stay the same"
# symptom_check = "max(moved) == 0"
# cause = "The optimizer was built from the parameters that were trainable then, the head's."
# fix = "give the optimizer all parameters, or add_param_group on unfreezing"
# ///
import torch
from torch import nn


class Stage(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv = nn.Conv1d(inputs, outputs, 5, padding=2)
        self.norm = nn.GroupNorm(2, outputs)

    def forward(self, x):
        return nn.functional.max_pool1d(torch.relu(self.norm(self.conv(x))), 2)


class SignalNet(nn.Module):
    def __init__(self, classes=4):
        super().__init__()
        self.stages = nn.ModuleList([Stage(2, 8), Stage(8, 16), Stage(16, 16)])
        self.head = nn.Linear(16, classes)

    def forward(self, x):
        for stage in self.stages:
            x = stage(x)
        return self.head(x.mean(2))

    def freeze(self):
        for stage in self.stages:
            stage.requires_grad_(False)

    def unfreeze_last(self, count):
        for stage in self.stages[len(self.stages) - count:]:
            stage.requires_grad_(True)  #! also


def signals(count):
    kind = torch.randint(0, 4, (count,))
    t = torch.linspace(0, 6.28, 32)
    wave = torch.sin(t * (kind[:, None] + 1) + 6.28 * torch.rand(count, 1))
    return torch.stack([wave, wave.roll(3, 1)], 1) + 0.1 * torch.randn(count, 2, 32), kind


torch.manual_seed(23)
model = SignalNet()
model.freeze()
optimizer = torch.optim.AdamW(filter(lambda p: p.requires_grad, model.parameters()), lr=4e-3, weight_decay=1e-2)  #- here
#+ optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=1e-2)
unfreeze_at = {2: 1, 3: 2}
initial = [stage.conv.weight.detach().clone() for stage in model.stages]
x, y = signals(96)
for epoch in range(5):
    if epoch in unfreeze_at:  #! also
        model.unfreeze_last(unfreeze_at[epoch])  #! here
    for rows in torch.randperm(96).split(24):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()  #! also
        loss.backward()
        optimizer.step()  #! also
    moved = [(stage.conv.weight.detach() - start).norm().item() for stage, start in zip(model.stages, initial)]
    print(f"epoch {epoch} loss {loss.item():.3f} moved {[round(m, 3) for m in moved]}")
