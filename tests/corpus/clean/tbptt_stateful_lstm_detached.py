import torch
from torch import nn

torch.manual_seed(0)


class LM(nn.Module):
    def __init__(self, V=12, E=8, H=16):
        super().__init__()
        self.emb = nn.Embedding(V, E)
        self.rnn = nn.LSTM(E, H, num_layers=2, dropout=0.2)
        self.dec = nn.Linear(H, V)
        self.drop = nn.Dropout(0.2)
        self.H = H

    def forward(self, x, hidden):
        out, hidden = self.rnn(self.drop(self.emb(x)), hidden)
        return self.dec(self.drop(out)).view(-1, 12), hidden

    def init_hidden(self, bsz):
        w = next(self.parameters())
        return (w.new_zeros(2, bsz, self.H), w.new_zeros(2, bsz, self.H))


def repackage_hidden(h):
    if isinstance(h, torch.Tensor):
        return h.detach()
    return tuple(repackage_hidden(v) for v in h)


def batchify(data, bsz):
    n = data.size(0) // bsz
    return data[: n * bsz].view(bsz, -1).t().contiguous()


corpus = batchify((torch.arange(240) * 5 + torch.randint(0, 2, (240,))) % 12, 4)
model, bptt, lr = LM(), 10, 2.0
criterion = nn.CrossEntropyLoss()
best = None
for epoch in range(2):
    model.train()
    total = 0.0
    hidden = model.init_hidden(4)
    for i in range(0, 48 - 1, bptt):
        n = min(bptt, 48 - 1 - i)
        data, targets = corpus[i : i + n], corpus[i + 1 : i + 1 + n].reshape(-1)
        model.zero_grad()
        hidden = repackage_hidden(hidden)
        output, hidden = model(data, hidden)
        loss = criterion(output, targets)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-lr)
        total += loss.item()
    model.eval()
    with torch.no_grad():
        hidden = model.init_hidden(4)
        out, hidden = model(corpus[48:-1], hidden)
        val = criterion(out, corpus[49:].reshape(-1)).item()
    if best is None or val < best:
        best = val
    else:
        lr /= 4.0
    print(epoch, total, val)
