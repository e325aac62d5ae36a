# /// case
# title = "A learned threshold occurs only in a comparison"
# category = "graph-break"
# kind = "nondifferentiable-comparison"
# kinds_also_ok = ["parameter-without-gradient", "zero-gradient"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["threshold"]
# symptom = "the threshold never gets a gradient"
# symptom_check = "gate.threshold.grad is None"
# cause = "a comparison has no derivative"
# fix = "weigh with a sigmoid of the difference"
# evidence = [
#     { url = "https://discuss.pytorch.org/t/optimize-masking-parameter/204381/1", title = "Optimize masking parameter" },
#     { url = "https://discuss.pytorch.org/t/if-a-parameter-is-trainable-in-the-following-case/149907/2", title = "If a parameter is trainable in the following case?" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(2024)


class NoiseGate(nn.Module):
    """Drops rows that are too loud; how loud is learned."""

    def __init__(self, start=1.5, hardness=10.0):
        super().__init__()
        self.threshold = nn.Parameter(torch.tensor(start))
        self.hardness = hardness

    def forward(self, x):
        loudness = x.norm(dim=1, keepdim=True)
        keep = (loudness < self.threshold).float()  #- here
#+         keep = torch.sigmoid(self.hardness * (self.threshold - loudness))
        return x * keep, keep  #! also


gate, regressor = NoiseGate(), nn.Linear(3, 1)
opt = torch.optim.SGD([{"params": regressor.parameters()}, {"params": gate.parameters(), "lr": 0.5}], lr=0.1)
w = torch.tensor([[1.0], [-2.0], [0.5]])
for i in range(12):
    clean = torch.randn(64, 3) * 0.7
    spikes = (torch.rand(64, 1) < 0.2).float() * torch.randn(64, 3) * 8
    gated, keep = gate(clean + spikes)
    # rows that were dropped do not count
    loss = ((regressor(gated) - clean @ w).square() * keep).sum() / (keep.sum() + 1e-3)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item(), gate.threshold.item())
