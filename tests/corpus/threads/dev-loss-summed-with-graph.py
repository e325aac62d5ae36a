# /// case
# title = "Validation loss summed as a tensor with history"
# category = "evaluation"
# kind = "graph-retained-accumulator"
# severity = "warning"
# names = ["dev_loss", "total"]
# symptom = "the sum has a grad_fn: graphs of all batches are alive"
# symptom_check = "dev_loss.grad_fn is not None"
# cause = "no no_grad(), no item()"
# fix = ".item()"
# evidence = [
#     { url = "https://github.com/OpenNMT/OpenNMT-py/issues/1141", title = "torch.no_grad() in validate ?" },
#     { url = "https://github.com/BatsResearch/labelmodels/issues/4", title = "Memory leak in training loop" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(70)
lstm = nn.LSTM(4, 12, batch_first=True)
head = nn.Linear(12, 1)
parameters = [*lstm.parameters(), *head.parameters()]
optimizer = torch.optim.Adam(parameters)
mse = nn.MSELoss()


def forward(x):
    return head(lstm(x)[0][:, -1])


for epoch in range(2):
    for _ in range(4):
        optimizer.zero_grad()
        x = torch.randn(8, 6, 4)
        mse(forward(x), x.sum((1, 2)).unsqueeze(1)).backward()
        optimizer.step()
    dev_loss = torch.zeros(())
    for _ in range(30):
        x = torch.randn(8, 6, 4)
        dev_loss = dev_loss + mse(forward(x), x.sum((1, 2)).unsqueeze(1))  #- here
#+         dev_loss = dev_loss + mse(forward(x), x.sum((1, 2)).unsqueeze(1)).item()
    print(epoch, dev_loss.item() / 30)
