# /// case
# category = "wiring"
# kind = "clip-after-step"
# severity = "warning"
# names = ["clip_grad_norm_"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
rnn = nn.RNN(3, 6, batch_first=True)
opt = torch.optim.SGD(rnn.parameters(), lr=0.5)
for x in torch.randn(4, 5, 9, 3):
    out, _ = rnn(x)
    loss = out[:, -1].pow(2).sum()
    opt.zero_grad()
    loss.backward()
#+     nn.utils.clip_grad_norm_(rnn.parameters(), 0.5)
    opt.step()  #! also
    nn.utils.clip_grad_norm_(rnn.parameters(), 0.5)  #- here
    print(loss.item())
