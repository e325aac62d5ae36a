# /// case
# category = "leaf"
# kind = "retain-grad-after-backward"
# severity = "warning"
# names = ["attn", "scores"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)


class TinyAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(8, 8) for _ in range(3))
        self.attn = None

    def forward(self, x):
        scores = self.q(x) @ self.k(x).transpose(1, 2) / 8**0.5
        self.attn = scores.softmax(-1)
        return self.attn @ self.v(x)


net = TinyAttention()
out = net(torch.randn(2, 5, 8))
#+ net.attn.retain_grad()
out.sum().backward()
net.attn.retain_grad()  #- here
relevance = net.attn.grad  #! also
print("attention relevance:", relevance if relevance is None else relevance.shape)
heat = torch.zeros(5) if relevance is None else (relevance * net.attn).sum((0, 1))
print(heat.shape, relevance)
