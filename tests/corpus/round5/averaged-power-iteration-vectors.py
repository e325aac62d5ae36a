# /// case
# title = "The moving average averages spectral norm's unit vectors"
# category = "identity"
# kind = "average-of-state"
# kinds_also_ok = ["average-of-buffers"]
# severity = "warning"
# names = ["state_dict", "shadow", "weight_u"]
# symptom = "the averaged vectors are no unit vectors, so evaluation divides by too small a norm"
# symptom_check = "min(norms) < 0.999"
# cause = "all entries of state_dict() are averaged, buffers of power iteration too"
# fix = "copy such buffers instead"
# evidence = [
#     { url = "https://github.com/NCAR/miles-credit/pull/394", title = "fix(EMATracker): exclude spectral norm buffers from EMA shadow" },
# ]
# ///
import torch
import torch.nn as nn
from torch.nn.utils import spectral_norm

torch.manual_seed(52)


class EMATracker:
    def __init__(self, model, decay):
        self.decay = decay
        self.shadow = {k: v.detach().clone() for k, v in model.state_dict().items()}

    @torch.no_grad()
    def update(self, model):
        for key, value in model.state_dict().items():
            if value.is_floating_point():  #- here
#+             if value.is_floating_point() and not key.endswith(("weight_u", "weight_v")):
                self.shadow[key].mul_(self.decay).add_(value, alpha=1 - self.decay)  #! also
            else:
                self.shadow[key].copy_(value)

    def swap(self, model):
        kept = {k: v.detach().clone() for k, v in model.state_dict().items()}
        model.load_state_dict(self.shadow)
        return kept


def sn_linear(i, o):
    return spectral_norm(nn.Linear(i, o), n_power_iterations=1)


forecast = nn.Sequential(sn_linear(16, 64), nn.GELU(), sn_linear(64, 64), nn.GELU(), sn_linear(64, 16))
optimizer = torch.optim.AdamW(forecast.parameters(), lr=2e-2)
ema = EMATracker(forecast, decay=0.9)
mixing = torch.randn(16, 16) / 4
for step in range(40):
    state = torch.randn(32, 16)
    loss = (forecast(state) - torch.tanh(state @ mixing)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    ema.update(forecast)

kept = ema.swap(forecast)
forecast.eval()
with torch.no_grad():
    state = torch.randn(64, 16)
    valid_loss = (forecast(state) - torch.tanh(state @ mixing)).square().mean().item()
norms = [v.norm().item() for k, v in ema.shadow.items() if k.endswith("weight_u")]
forecast.load_state_dict(kept)
print(loss.item(), valid_loss, norms)
