# /// case
# category = "training"
# kind = "softmax-over-batch"
# severity = "warning"
# names = ["attention", "probabilities"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
head = nn.Linear(5, 3)
opt = torch.optim.SGD(head.parameters(), lr=0.1)
for x in torch.randn(4, 12, 5):
    y = torch.randint(0, 3, (12,))
    logp = nn.functional.log_softmax(head(x), dim=0)  #- here
#+     logp = nn.functional.log_softmax(head(x), dim=1)
    loss = nn.functional.nll_loss(logp, y)  #! also
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item())
