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
        dev_loss = dev_loss + mse(forward(x), x.sum((1, 2)).unsqueeze(1))
    print(epoch, dev_loss.item() / 30)
