import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
query_net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(inplace=True), nn.Linear(32, 8))
key_net = copy.deepcopy(query_net)
for p in key_net.parameters():
    p.requires_grad = False
queue = F.normalize(torch.randn(8, 64), dim=0)
pointer = 0
opt = torch.optim.SGD(query_net.parameters(), lr=0.03, momentum=0.9)
for step in range(6):
    x = torch.randn(16, 8)
    q = F.normalize(query_net(x + 0.1 * torch.randn_like(x)), dim=1)
    with torch.no_grad():
        for pq, pk in zip(query_net.parameters(), key_net.parameters()):
            pk.data = pk.data * 0.99 + pq.data * 0.01
        k = F.normalize(key_net(x + 0.1 * torch.randn_like(x)), dim=1)
    positive = torch.einsum("nc,nc->n", [q, k]).unsqueeze(-1)
    negative = torch.einsum("nc,ck->nk", [q, queue.clone().detach()])
    loss = F.cross_entropy(torch.cat([positive, negative], 1) / 0.2, torch.zeros(16, dtype=torch.long))
    opt.zero_grad()
    loss.backward()
    opt.step()
    queue[:, pointer : pointer + 16] = k.T
    pointer = (pointer + 16) % 64
print(loss.item())
