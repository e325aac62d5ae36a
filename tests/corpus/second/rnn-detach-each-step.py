# /// case
# title = "The state is detached in every time step: no backpropagation through time"
# category = "rnn-state"
# kind = "graph-break-detach"
# severity = "warning"
# names = ["h"]
# difficulty = "hard"
# symptom = "silent: gradients from late losses never reach early inputs; the initial state gets none"
# symptom_check = "h0.grad is None"
# cause = "detach inside the time loop"
# fix = "detach only between sequences"
# evidence = [
#     { url = "https://github.com/yhs968/pyGRU4REC/issues/8" },
#     { url = "https://github.com/oxwhirl/pymarl/issues/161" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(8)
rnn = nn.RNNCell(2, 12)
readout = nn.Linear(12, 1)
h0 = nn.Parameter(torch.zeros(1, 12))
opt = torch.optim.Adam([h0, *rnn.parameters(), *readout.parameters()], lr=5e-3)
for it in range(5):
    seq = torch.randn(16, 9, 2)
    goal = seq[:, 0].sum(1, keepdim=True)
    h = h0.expand(16, -1)
    for t in range(seq.size(1)):
        h = rnn(seq[:, t], h.detach())  #- here
#+         h = rnn(seq[:, t], h)
    loss = nn.functional.mse_loss(readout(h), goal)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
