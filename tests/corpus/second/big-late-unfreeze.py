# /// case
# title = "Fine-tuning in two phases: the backbone is unfrozen, but the optimizer was built from the trainable parameters of phase 1"
# category = "optimizer-wiring"
# kind = "parameters-not-in-optimizer"
# severity = "warning"
# names = ["backbone", "optimizer"]
# difficulty = "hard"
# symptom = "silent: unfrozen layers get gradients and never move"
# symptom_check = "torch.equal(snapshot, tuner.backbone[0].weight)"
# cause = "filter(requires_grad) was evaluated before the unfreeze"
# fix = "add_param_group after the unfreeze"
# evidence = [
#     { url = "https://github.com/luxonis/luxonis-train/pull/432" },
#     { url = "https://github.com/pytorch/pytorch/issues/14467" },
# ]
# ///
"""Two-phase fine-tuning: linear probing, then everything."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class FineTuner(nn.Module):
    def __init__(self, backbone: nn.Module, width: int, n_classes: int):
        super().__init__()
        self.backbone = backbone
        self.norm = nn.LayerNorm(width)
        self.classifier = nn.Linear(width, n_classes)

    def forward(self, x):
        return self.classifier(self.norm(self.backbone(x)))

    def set_backbone_trainable(self, flag: bool):
        for p in self.backbone.parameters():
            p.requires_grad_(flag)
            if not flag:
                p.grad = None


def pretrain(backbone, steps=5):
    """A cheap stand-in for pre-training: denoise the input."""
    decoder = nn.Linear(32, 12)
    opt = torch.optim.Adam([*backbone.parameters(), *decoder.parameters()], lr=1e-2)
    for _ in range(steps):
        x = torch.randn(32, 12)
        opt.zero_grad()
        F.mse_loss(decoder(backbone(x + 0.1 * torch.randn_like(x))), x).backward()
        opt.step()
    return backbone


def run_phase(model, optimizer, batches, name):
    model.train()
    last = 0.0
    for x, y in batches:
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        last = loss.item()
    print(f"{name}: {last:.4f}")
    return last


def make_batches(n):
    out = []
    for _ in range(n):
        x = torch.randn(24, 12)
        out.append((x, (x[:, 0] * x[:, 1] > 0).long()))
    return out


torch.manual_seed(4)
body = pretrain(nn.Sequential(nn.Linear(12, 32), nn.GELU(), nn.Linear(32, 32), nn.GELU()))
tuner = FineTuner(body, 32, 2)

# phase 1: only the classifier
tuner.set_backbone_trainable(False)
optimizer = torch.optim.AdamW((p for p in tuner.parameters() if p.requires_grad), lr=5e-3)  #! also
run_phase(tuner, optimizer, make_batches(8), "probe")

# phase 2: everything
tuner.set_backbone_trainable(True)  #! here
#+ optimizer.add_param_group({"params": list(tuner.backbone.parameters()), "lr": 5e-4})
snapshot = tuner.backbone[0].weight.detach().clone()
for group in optimizer.param_groups:
    group["lr"] *= 0.5
run_phase(tuner, optimizer, make_batches(12), "full")
print("backbone change", (tuner.backbone[0].weight - snapshot).norm().item())
