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
        loss.backward()
    opt.step()
    print(epoch, loss.item())
(whole,) = torch.autograd.grad(nn.functional.cross_entropy(net(batch), labels), net.weight)
