# /// case
# title = "Recurrent matrix with spectral radius > 1 over 60 steps, no clipping"
# category = "vanishing-exploding"
# kind = "exploding-gradient"
# severity = "warning"
# names = ["Wh"]
# difficulty = "medium"
# symptom = "silent: gradient norm explodes (> 1e8), loss diverges"
# symptom_check = "gnorm > 1e8"
# cause = "repeated multiplication by Wh"
# fix = "orthogonal init / gating / clipping"
# evidence = [
#     { url = "https://github.com/Marcovaldong/lstmp.pytorch/issues/2" },
#     { url = "https://github.com/pytorch/pytorch/issues/2623" },
#     { url = "https://github.com/mravanelli/pytorch-kaldi/issues/154" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(2)
H, T = 12, 60
Wx = nn.Parameter(torch.randn(3, H) * 0.3)
Wh = nn.Parameter(torch.randn(H, H) * 0.6)  #- here
#+ Wh = nn.Parameter(nn.init.orthogonal_(torch.empty(H, H)) * 0.95)
Wo = nn.Parameter(torch.randn(H, 1) * 0.3)
opt = torch.optim.SGD([Wx, Wh, Wo], lr=1e-12)  #-
#+ opt = torch.optim.SGD([Wx, Wh, Wo], lr=1e-3)
seq = torch.randn(4, T, 3)
goal = seq[:, 0, :1]
norms = []
for epoch in range(2):
    state = torch.zeros(4, H)
    for t in range(T):
        state = seq[:, t] @ Wx + state @ Wh  #! also
    loss = (state @ Wo - goal).abs().mean()
    opt.zero_grad()
    loss.backward()
    norms.append(Wh.grad.norm().item())
    opt.step()
gnorm = norms[0]
print(loss.item(), norms)
