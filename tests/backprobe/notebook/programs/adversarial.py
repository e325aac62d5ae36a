# %%
import torch
from torch import nn

torch.manual_seed(3)
maker, judge = nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 1), nn.Sigmoid())
for_maker = torch.optim.SGD(maker.parameters(), lr=0.1)
for_judge = torch.optim.SGD(judge.parameters(), lr=0.1)
criterion = nn.BCELoss()
real = torch.tensor([[1.0, 2.0], [2.0, 1.0]])
# %%
for step in range(3):
    for_judge.zero_grad()
    fake = maker(torch.ones(2, 2))
    loss_judge = criterion(judge(real), torch.ones(2, 1)) + criterion(judge(fake.detach()), torch.zeros(2, 1))
    loss_judge.backward()
    for_judge.step()
    for_maker.zero_grad()
    loss_maker = criterion(judge(fake), torch.ones(2, 1))
    loss_maker.backward()
    for_maker.step()
    print(step, round(loss_judge.item(), 4), round(loss_maker.item(), 4))
# %%
[tuple(p.shape) for p in maker.parameters()]
