# /// case
# title = "Attention weights are normalised over the batch"
# category = "uncovered"
# kind = "softmax-over-batch"
# kinds_also_ok = ["softmax-wrong-dim"]
# severity = "warning"
# names = ["softmax", "weights"]
# symptom = "the weights of a query do not sum to one"
# symptom_check = "not torch.allclose(weights.sum(-1), torch.ones(6, 5))"
# cause = "softmax(dim=0)"
# fix = "dim=-1"
# evidence = [
#     { url = "https://github.com/PetrochukM/PyTorch-NLP/issues/2", title = "Attention's softmax dimension is wrong?" },
#     { url = "https://github.com/labmlai/annotated_deep_learning_paper_implementations/issues/146", title = "Bug in SA for DDPM UNet?" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(12)


class Attention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(dim, dim) for _ in range(3))
        self.scale = dim**-0.5

    def forward(self, x):
        scores = self.q(x) @ self.k(x).transpose(-2, -1) * self.scale
        weights = torch.softmax(scores, dim=0)  #- here
#+         weights = torch.softmax(scores, dim=-1)
        return weights @ self.v(x), weights


attention, head = Attention(8), nn.Linear(8, 2)
opt = torch.optim.Adam([*attention.parameters(), *head.parameters()], lr=1e-3)
for _ in range(5):
    x, y = torch.randn(6, 5, 8), torch.randint(0, 2, (6,))
    mixed, weights = attention(x)
    loss = nn.functional.cross_entropy(head(mixed.mean(1)), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
