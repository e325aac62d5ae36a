# /// case
# title = "running_loss += loss keeps every graph of the epoch"
# category = "uncovered"
# kind = "graph-retained-accumulator"
# severity = "warning"
# names = ["running_loss"]
# symptom = "running_loss has a grad_fn, the graphs of the epoch stay alive"
# symptom_check = "torch.is_tensor(running_loss) and running_loss.grad_fn is not None"
# cause = "the tensor is summed"
# fix = "loss.item()"
# evidence = [
#     { url = "https://github.com/BatsResearch/labelmodels/issues/4", title = "Memory leak in training loop" },
#     { url = "https://github.com/JIA-Lab-research/DecoupleNet/issues/3", title = "GPU memory consumption" },
# ]
# ///
import torch
from torch import nn, optim


class LabelModel(nn.Module):
    def __init__(self, functions=6, classes=3):
        super().__init__()
        self.accuracy = nn.Parameter(torch.zeros(functions, classes))
        self.prior = nn.Parameter(torch.zeros(classes))

    def forward(self, votes):
        return -(votes @ self.accuracy + self.prior).logsumexp(1).mean() + self.accuracy.pow(2).sum()


torch.manual_seed(3)
model = LabelModel()
optimizer = optim.Adam(model.parameters(), lr=1e-2)
votes = torch.randint(0, 2, (200, 6)).float()
for epoch in range(2):
    running_loss = 0.0
    for batch in votes.split(10):
        optimizer.zero_grad()
        loss = model(batch)
        loss.backward()
        optimizer.step()
        running_loss += loss  #- here
#+         running_loss += loss.item()
    print(epoch, float(running_loss) / 20)
