import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
N, D, C = 30, 8, 3
labels = torch.arange(N) % C
features = F.one_hot(labels, D).float() + 0.5 * torch.randn(N, D)
features = features / features.abs().sum(1, keepdim=True)
adj = (torch.rand(N, N) < 0.1) | ((labels[:, None] == labels[None]) & (torch.rand(N, N) < 0.3)) | torch.eye(N).bool()
idx_train, idx_val, idx_test = torch.arange(0, 12), torch.arange(12, 20), torch.arange(20, 30)


class GATLayer(nn.Module):
    def __init__(self, i, o, dropout, concat=True):
        super().__init__()
        self.W = nn.Parameter(torch.empty(i, o))
        self.a = nn.Parameter(torch.empty(2 * o, 1))
        nn.init.xavier_uniform_(self.W, gain=1.414)
        nn.init.xavier_uniform_(self.a, gain=1.414)
        self.o, self.dropout, self.concat = o, dropout, concat

    def forward(self, h, adj):
        Wh = h @ self.W
        e = F.leaky_relu(Wh @ self.a[: self.o] + (Wh @ self.a[self.o :]).T, 0.2)
        attention = torch.where(adj, e, torch.full_like(e, -9e15))
        attention = F.softmax(attention, dim=1)
        attention = F.dropout(attention, self.dropout, training=self.training)
        out = attention @ Wh
        return F.elu(out) if self.concat else out


class GAT(nn.Module):
    def __init__(self, heads=2):
        super().__init__()
        self.attentions = nn.ModuleList([GATLayer(D, 6, 0.3) for _ in range(heads)])
        self.out = GATLayer(6 * heads, C, 0.3, concat=False)

    def forward(self, x, adj):
        x = F.dropout(x, 0.3, training=self.training)
        x = torch.cat([att(x, adj) for att in self.attentions], dim=1)
        return F.log_softmax(self.out(x, adj), dim=1)


model = GAT()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
best, bad = 1e9, 0
for epoch in range(8):
    model.train()
    optimizer.zero_grad()
    output = model(features, adj)
    loss_train = F.nll_loss(output[idx_train], labels[idx_train])
    loss_train.backward()
    optimizer.step()
    model.eval()
    output = model(features, adj)
    loss_val = F.nll_loss(output[idx_val], labels[idx_val])
    if loss_val.item() < best:
        best, bad = loss_val.item(), 0
    else:
        bad += 1
    if bad == 4:
        break
model.eval()
output = model(features, adj)
print((output[idx_test].argmax(1) == labels[idx_test]).float().mean().item())
