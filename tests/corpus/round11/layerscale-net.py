# /// case
# title = "A view of a parameter is stored, not the parameter"
# category = "leaf"
# kind = "parameter-is-non-leaf"
# kinds_also_ok = ["parameter-not-registered", "view-of-parameter-stored", "non-leaf-parameter", "operation-after-nn-parameter"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["gamma", "Parameter", "view"]
# symptom = "gamma is not among the parameters and never changes"
# symptom_check = "not any(name.endswith('gamma') for name, _ in model.named_parameters())"
# cause = ".view() returns a plain non-leaf tensor, so the module does not register it."
# fix = "give the Parameter its final shape"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class LayerNorm2d(nn.LayerNorm):
    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class Block(nn.Module):
    def __init__(self, dim, init_value=0.1):
        super().__init__()
        self.dwconv = nn.Conv2d(dim, dim, 5, padding=2, groups=dim)
        self.norm = LayerNorm2d(dim)
        self.expand = nn.Conv2d(dim, 2 * dim, 1)
        self.project = nn.Conv2d(2 * dim, dim, 1)
        self.gamma = nn.Parameter(init_value * torch.ones(dim)).view(1, dim, 1, 1)  #- here
#+         self.gamma = nn.Parameter(init_value * torch.ones(1, dim, 1, 1))

    def forward(self, x):
        residual = x
        x = self.norm(self.dwconv(x))
        x = self.project(F.gelu(self.expand(x)))
        return residual + self.gamma * x  #! also


class MiniConvNeXt(nn.Module):
    def __init__(self, dim=12, depth=2, classes=4):
        super().__init__()
        self.stem = nn.Conv2d(1, dim, 2, stride=2)
        self.blocks = nn.Sequential(*[Block(dim) for _ in range(depth)])
        self.head = nn.Linear(dim, classes)

    def forward(self, x):
        x = self.blocks(self.stem(x))
        return self.head(x.mean(dim=(2, 3)))


def gratings(n, size=12):
    label = torch.randint(0, 4, (n,))
    theta = label * (3.14159 / 4) + 0.1 * torch.randn(n)
    axis = torch.arange(size).float()
    wave = theta.cos()[:, None, None] * axis[None, None, :] + theta.sin()[:, None, None] * axis[None, :, None]
    img = torch.sin(1.2 * wave + 6.28 * torch.rand(n, 1, 1))
    return (img + 0.3 * torch.randn_like(img)).unsqueeze(1), label


def param_groups(model, weight_decay):
    decay, no_decay = [], []
    for name, p in model.named_parameters():  #! also
        (no_decay if p.ndim <= 1 or name.endswith("gamma") else decay).append(p)  #! also
    return [{"params": decay, "weight_decay": weight_decay}, {"params": no_decay, "weight_decay": 0.0}]


def main(steps=60):
    model = MiniConvNeXt()
    optimizer = torch.optim.AdamW(param_groups(model, 0.05), lr=4e-3)  #! also
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=steps)
    for step in range(steps):
        images, labels = gratings(32)
        loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 20 == 0:
            print(f"{step:3d}: {loss.item():.4f}")
    return model


torch.manual_seed(27)
torch.set_num_threads(1)
model = main()
print("layer scale:", [b.gamma.abs().mean().item() for b in model.blocks])
