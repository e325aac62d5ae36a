# /// case
# title = "Scaler is not updated where a step is skipped"
# category = "numerics"
# kind = "scaler-update-missing"
# kinds_also_ok = ["unscale-twice"]
# severity = "error"
# names = ["scaler", "update", "unscale_", "skip"]
# symptom = "RuntimeError: unscale_() has already been called on this optimizer since the last update()"
# raises = "RuntimeError"
# raises_message = "unscale_() has already been called"
# cause = "update() is inside the branch"
# fix = "update() in each iteration"
# evidence = [
#     { url = "https://github.com/Haian-Jin/LVSM/pull/19", title = "hotfix(train): resolve GradScaler RuntimeError when skipping optimizer…" },
#     { url = "https://github.com/espnet/espnet/pull/2362", title = "Fix amp" },
# ]
# ///
from types import SimpleNamespace

import torch
import torch.nn as nn


class ViewSynthesis(nn.Module):
    def __init__(self, dim=12):
        super().__init__()
        self.tokens = nn.Linear(dim, 24)
        self.out = nn.Linear(24, 3)

    def forward(self, rays):
        return torch.sigmoid(self.out(torch.relu(self.tokens(rays))))


def train(config):
    torch.manual_seed(config.seed)
    model = ViewSynthesis()
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.lr, betas=(0.9, 0.95))
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    param_update_step = 0
    for step in range(config.steps):
        rays, colours = torch.randn(32, 12), torch.rand(32, 3)
        if step == 1:
            colours = colours * 1e4
        loss = nn.functional.mse_loss(model(rays), colours)
        optimizer.zero_grad(set_to_none=True)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)  #! also
        norm = nn.utils.clip_grad_norm_(model.parameters(), config.grad_clip)
        skip_optimizer_step = not torch.isfinite(norm) or norm > config.allowed_gradnorm
        if not skip_optimizer_step:
            scaler.step(optimizer)
            scaler.update()  #- here
            param_update_step += 1
#+         scaler.update()
    return param_update_step, loss.item()


settings = SimpleNamespace(seed=96, lr=1e-3, steps=5, grad_clip=1.0, allowed_gradnorm=1.0)
print(train(settings))
