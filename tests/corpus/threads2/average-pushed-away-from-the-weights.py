# /// case
# title = "Gap is added to the moving average with the wrong sign"
# category = "identity"
# kind = "ema-diverges"
# kinds_also_ok = ["divergence"]
# severity = "warning"
# names = ["shadow", "gap", "update", "add_"]
# symptom = "the average runs away from the weights"
# symptom_check = "ema.distance() > 10"
# cause = "the gap must be subtracted"
# fix = "sub_"
# evidence = [
#     { url = "https://github.com/ostris/ai-toolkit/issues/1034", title = "EMA shadow weights diverge — `sub_` changed to `add_` in commit 4a41f14" },
# ]
# ///
import torch
from torch import nn


class ExponentialMovingAverage:
    def __init__(self, parameters, decay=0.9, use_feedback=False):
        self.parameters = [p for p in parameters if p.requires_grad]
        self.shadow = [p.detach().clone() for p in self.parameters]
        self.decay, self.use_feedback = decay, use_feedback

    @torch.no_grad()
    def update(self):
        one_minus_decay = 1.0 - self.decay
        for s_param, param in zip(self.shadow, self.parameters):
            gap = s_param - param
            s_param.add_(gap * one_minus_decay)  #- here
#+             s_param.sub_(gap * one_minus_decay)
            if self.use_feedback:
                param.add_(gap, alpha=one_minus_decay)

    def distance(self):
        return sum((s - p.detach()).norm().item() for s, p in zip(self.shadow, self.parameters))


class LowRank(nn.Module):
    def __init__(self, dim, rank):
        super().__init__()
        self.org = nn.Linear(dim, dim).requires_grad_(False)
        self.lora_down = nn.Linear(dim, rank, bias=False)
        self.lora_up = nn.Linear(rank, dim, bias=False)
        nn.init.zeros_(self.lora_up.weight)

    def forward(self, x):
        return self.org(x) + self.lora_up(self.lora_down(x))


torch.manual_seed(63)
net = nn.Sequential(LowRank(10, 2), nn.SiLU(), LowRank(10, 2))
trained = [p for p in net.parameters() if p.requires_grad]
optimizer = torch.optim.AdamW(trained, lr=1e-2)
ema = ExponentialMovingAverage(trained)
for step in range(40):
    clean = torch.randn(16, 10)
    loss = nn.functional.mse_loss(net(clean + 0.3 * torch.randn_like(clean)), clean)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    ema.update()  #! also
print(loss.item(), ema.distance())
