import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class MPNN(nn.Module):
    def __init__(self, d_in, d_h, d_out):
        super().__init__()
        self.lift = nn.Linear(d_in, d_h)
        self.message = nn.ModuleList(nn.Linear(2 * d_h, d_h) for _ in range(2))
        self.update = nn.ModuleList(nn.GRUCell(d_h, d_h) for _ in range(2))
        self.readout = nn.Linear(d_h, d_out)

    def forward(self, x, edge_index, batch, n_graphs):
        h = F.relu(self.lift(x))
        src, dst = edge_index
        for msg, upd in zip(self.message, self.update):
            m = F.relu(msg(torch.cat([h[src], h[dst]], dim=-1)))
            agg = torch.zeros_like(h).index_add(0, dst, m)
            h = upd(agg, h)
        pooled = torch.zeros(n_graphs, h.size(1))
        pooled.index_add_(0, batch, h)
        return self.readout(pooled / torch.bincount(batch, minlength=n_graphs).unsqueeze(1))


def graphs(k):
    xs, es, b, off = [], [], [], 0
    for g in range(k):
        n = int(torch.randint(4, 8, ()))
        xs.append(torch.randn(n, 5))
        es.append(torch.randint(0, n, (2, 3 * n)) + off)
        b += [g] * n
        off += n
    x = torch.cat(xs)
    b = torch.tensor(b)
    y = torch.zeros(k).index_add(0, b, x[:, 0]).sign().clamp(min=0).long()
    return x, torch.cat(es, 1), b, y


model = MPNN(5, 16, 2)
opt = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(5):
    x, e, b, y = graphs(12)
    model.train()
    opt.zero_grad()
    out = model(x, e, b, 12)
    loss = F.cross_entropy(out, y)
    loss.backward()
    opt.step()
    print(epoch, loss.item(), int((out.argmax(1) == y).sum()), "/ 12")
