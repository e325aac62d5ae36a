# /// case
# category = "numeric"
# kind = "nonfinite-gradient"
# severity = "warning"
# names = ["logp", "counts"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
bias = nn.Parameter(torch.zeros(5))
counts = torch.tensor([3.0, 0.0, 4.0, 1.0, 0.0])
opt = torch.optim.SGD([bias], lr=0.1)
for _ in range(3):
    probabilities = counts / counts.sum()
    logp = torch.log(probabilities)  #- here
#+     logp = torch.log(probabilities.clamp(min=1e-8))
    weight = torch.softmax(bias, 0)
    loss = (probabilities * (logp - weight.log())).sum()  #! also
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item())
