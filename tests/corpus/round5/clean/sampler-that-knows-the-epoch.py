import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

torch.manual_seed(46)
data = TensorDataset(torch.randn(60, 5), torch.randint(0, 2, (60,)))
sampler = DistributedSampler(data, num_replicas=2, rank=1, shuffle=True, drop_last=True)
loader = DataLoader(data, batch_size=10, sampler=sampler)
held = DataLoader(TensorDataset(torch.randn(20, 5), torch.randint(0, 2, (20,))), batch_size=10, shuffle=False)
model = nn.Linear(5, 2)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for epoch in range(3):
    sampler.set_epoch(epoch)
    model.train()
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        accuracy = torch.cat([(model(x).argmax(1) == y).float() for x, y in held]).mean().item()
    print(epoch, loss.item(), accuracy)
