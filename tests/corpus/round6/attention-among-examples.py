# /// case
# title = "Attention runs over the batch"
# category = "shape"
# kind = "batch-dimension-mixed"
# kinds_also_ok = ["missing-batch-first"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["batch_first", "MultiheadAttention"]
# symptom = "an example's output depends on the rest of the batch"
# symptom_check = "not torch.allclose(net(sets)[0], net(sets[:1])[0], atol=1e-5)"
# cause = "the module takes (sequence, batch, features)"
# fix = "batch_first=True"
# ///
import torch
import torch.nn as nn


class SetEncoder(nn.Module):
    """x: (batch, elements, features)"""

    def __init__(self, n_in=4, dim=16, heads=4):
        super().__init__()
        self.lift = nn.Linear(n_in, dim)
        self.attention = nn.MultiheadAttention(dim, heads)  #- here
#+         self.attention = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.norm = nn.LayerNorm(dim)
        self.out = nn.Linear(dim, 1)

    def forward(self, x):
        h = self.lift(x)
        h = self.norm(h + self.attention(h, h, h, need_weights=False)[0])  #! also
        return self.out(h.mean(1)).squeeze(-1)


torch.manual_seed(70)
net = SetEncoder()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for it in range(20):
    sets = torch.randn(32, 7, 4)
    goal = sets.amax(1).sum(1)
    loss = nn.functional.mse_loss(net(sets), goal)
    opt.zero_grad()
    loss.backward()
    opt.step()
net.eval()
print(loss.item())
