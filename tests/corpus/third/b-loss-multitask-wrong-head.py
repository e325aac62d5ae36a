# /// case
# title = "Second task's loss is computed on the first head's output"
# category = "loss-wiring"
# kind = "parameters-without-gradient"
# severity = "warning"
# severity_by_writer = "error"
# names = ["valence_head", "arousal", "out"]
# difficulty = "easy"
# symptom = "Both losses fall at first; the valence head never gets a gradient."
# symptom_check = "net.valence_head.weight.grad is None"
# cause = "Copy-paste: the valence loss uses out['arousal']."
# fix = "Use out['valence']."
# evidence = [{ url = "https://github.com/labmlai/annotated_deep_learning_paper_implementations/issues/66" }, { url = "https://github.com/facebookresearch/mmf/issues/104" }]
# ///
import torch
import torch.nn.functional as F
from torch import nn


class EmotionNet(nn.Module):
    """Shared recurrent trunk, two regression heads."""

    def __init__(self, n_feat=5, hidden=20):
        super().__init__()
        self.trunk = nn.LSTM(n_feat, hidden, batch_first=True)
        self.arousal_head = nn.Linear(hidden, 1)
        self.valence_head = nn.Linear(hidden, 1)  #! also

    def forward(self, x):
        h, _ = self.trunk(x)
        h = h.mean(1)
        return {"arousal": self.arousal_head(h).squeeze(-1), "valence": self.valence_head(h).squeeze(-1)}


class MultiTaskLoss:
    def __init__(self, weights):
        self.weights = weights

    def __call__(self, out, arousal, valence):
        parts = {
            "arousal": F.mse_loss(out["arousal"], arousal),
            "valence": F.mse_loss(out["arousal"], valence),  #- here
#+             "valence": F.mse_loss(out["valence"], valence),
        }
        total = sum(self.weights[k] * v for k, v in parts.items())  #! also
        return total, {k: v.item() for k, v in parts.items()}


torch.manual_seed(6)
net = EmotionNet()
criterion = MultiTaskLoss({"arousal": 1.0, "valence": 0.5})
optim = torch.optim.Adam(net.parameters(), lr=1e-2)
x = torch.randn(160, 9, 5)
arousal, valence = x[..., 0].mean(1), x[..., 1:3].sum(-1).mean(1)
for epoch in range(6):
    for i in range(0, 160, 40):
        batch = slice(i, i + 40)
        loss, parts = criterion(net(x[batch]), arousal[batch], valence[batch])  #! also
        optim.zero_grad()
        loss.backward()
        optim.step()
print(parts)
