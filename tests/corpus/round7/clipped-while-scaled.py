# /// case
# title = "Gradients are clipped while they carry the loss scale"
# category = "optimizer"
# kind = "clip-before-unscale"
# kinds_also_ok = ["missing-unscale"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["scaler", "unscale_", "clip_grad_norm_"]
# symptom = "the norm that is clipped is some thousand times too large, so every update is tiny"
# symptom_check = "min(norms) > 100"
# cause = "unscale_ is not called before clipping"
# fix = "scaler.unscale_(optimizer)"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.amp import GradScaler, autocast


def make_model(width=32):
    return nn.Sequential(nn.Linear(16, width), nn.GELU(), nn.LayerNorm(width), nn.Linear(width, 4))


def train_step(model, batch, optimizer, scaler, max_norm=1.0):
    x, y = batch
    optimizer.zero_grad(set_to_none=True)
    with autocast("cpu", dtype=torch.bfloat16):
        logits = model(x)
        loss = F.cross_entropy(logits, y)
    scaler.scale(loss).backward()  #! also
#+     scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)  #! here
    scaler.step(optimizer)  #! also
    scaler.update()
    return loss.item(), norm.item()


torch.manual_seed(64)
model = make_model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
scaler = GradScaler("cpu", init_scale=2.0 ** 14)
x = torch.randn(96, 16)
y = (x[:, :4] * 2 + torch.randn(96, 4)).argmax(dim=1)
norms = []
for epoch in range(3):
    for batch in zip(x.split(32), y.split(32)):
        value, norm = train_step(model, batch, optimizer, scaler)
        norms.append(norm)
    print(epoch, value, norm)
