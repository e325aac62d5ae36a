# /// case
# title = "Gradient accumulation without dividing by the number of micro-batches"
# category = "experiment"
# kind = "accumulation-not-normalised"
# severity = "warning"
# names = ["backward", "micro"]
# symptom = "the accumulated gradient is four times that of the whole batch"
# symptom_check = "float(net.weight.grad.norm() / whole.norm()) > 2"
# cause = "mean losses are summed"
# fix = "divide by the number of micro-batches"
# evidence = [
#     { url = "https://github.com/OpenNMT/OpenNMT-py/pull/526", title = "Bug fix for gradient accumulation." },
#     { url = "https://github.com/modelscope/ms-swift/pull/10084", title = "fix(trainer): normalize partial gradient accumulation windows" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(31)
net = nn.Linear(10, 4)
opt = torch.optim.SGD(net.parameters(), lr=1e-9)
accumulate = 4
for epoch in range(3):
    batch, labels = torch.randn(64, 10), torch.randint(0, 4, (64,))
    opt.zero_grad()
    for micro, target in zip(batch.chunk(accumulate), labels.chunk(accumulate)):
        loss = nn.functional.cross_entropy(net(micro), target)
        loss.backward()  #- here
#+         (loss / accumulate).backward()
    opt.step()  #! also
    print(epoch, loss.item())
(whole,) = torch.autograd.grad(nn.functional.cross_entropy(net(batch), labels), net.weight)
