# /// case
# title = "Dot products of a wide attention are not scaled"
# category = "scale"
# kind = "unscaled-attention"
# kinds_also_ok = ["saturated-softmax", "vanishing-gradient"]
# severity = "warning"
# names = ["attend", "scores", "softmax"]
# symptom = "the softmax is saturated, nearly all weight lies on one key"
# symptom_check = "model.weights.amax(dim=-1).mean().item() > 0.9"
# cause = "the products grow with the width"
# fix = "divide by the root of the width"
# ///
import torch
import torch.nn as nn


def attend(q, k, v):
    scores = q @ k.transpose(-2, -1)  #- here
#+     scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    weights = scores.softmax(dim=-1)  #! also
    return weights @ v, weights


class SelfAttention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.wq, self.wk, self.wv = (nn.Linear(dim, dim, bias=False) for _ in range(3))
        self.out = nn.Linear(dim, 1)
        for layer in (self.wq, self.wk, self.wv):
            nn.init.normal_(layer.weight, std=dim ** -0.5)

    def forward(self, x):
        mixed, self.weights = attend(self.wq(x), self.wk(x), self.wv(x))
        return self.out(mixed.mean(dim=1))


torch.manual_seed(93)
DIM = 512
model = SelfAttention(DIM)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
criterion = nn.MSELoss()
for step in range(6):
    x = torch.randn(4, 10, DIM)
    target = x[:, :, 0].amax(dim=1, keepdim=True)
    loss = criterion(model(x), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item(), model.weights.amax(dim=-1).mean().item())
