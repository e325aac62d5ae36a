# /// case
# title = "Moving average looks parameters up under names that a wrapper has changed"
# category = "identity"
# kind = "ema-never-updated"
# kinds_also_ok = ["target-network-never-updated"]
# severity = "warning"
# names = ["shadow", "name", "update"]
# symptom = "validation with averaged weights never changes"
# symptom_check = "all(torch.equal(begin[n], t) for n, t in ema.shadow.items())"
# cause = "the wrapper's names begin with _orig_mod., so no parameter is found"
# fix = "update from the inner module (or strip the prefix)"
# evidence = [
#     { url = "https://github.com/wandb/senpai/pull/2899", title = "Cross-dataset: Corrected EMA warmup (timm-style) — fix decay=0.999 at step 750 bug (CODE CHANGE)" },
# ]
# ///
import torch
import torch.nn as nn


class EMA:
    def __init__(self, model, decay):
        self.decay = decay
        self.shadow = {n: p.detach().clone() for n, p in model.named_parameters() if p.requires_grad}

    @torch.no_grad()
    def update(self, model):
        for name, p in model.named_parameters():
            if name in self.shadow:  #! here
                self.shadow[name].lerp_(p, 1 - self.decay)

    def apply_to(self, model):
        self.backup = {n: p.detach().clone() for n, p in model.named_parameters()}
        model.load_state_dict(self.shadow, strict=False)

    def restore(self, model):
        model.load_state_dict(self.backup)


class Instrumented(nn.Module):
    """Counts calls; stands in for a compiled module."""

    def __init__(self, orig):
        super().__init__()
        self._orig_mod = orig
        self.calls = 0

    def forward(self, *args):
        self.calls += 1
        return self._orig_mod(*args)


torch.manual_seed(64)
model = nn.Sequential(nn.Linear(8, 24), nn.GELU(), nn.Linear(24, 1))
ema = EMA(model, decay=0.8)
wrapped = Instrumented(model)
optimizer = torch.optim.AdamW(wrapped.parameters(), lr=1e-2)
begin = {n: t.clone() for n, t in ema.shadow.items()}
valid_x = torch.randn(64, 8)
valid_y = valid_x.prod(1, keepdim=True)
scores = []
for epoch in range(4):
    for _ in range(5):
        x = torch.randn(32, 8)
        loss = nn.functional.mse_loss(wrapped(x), x.prod(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        ema.update(wrapped)  #- here
#+         ema.update(wrapped._orig_mod)
    ema.apply_to(model)
    with torch.no_grad():
        scores.append(nn.functional.mse_loss(model(valid_x), valid_y).item())
    ema.restore(model)
print(scores)
