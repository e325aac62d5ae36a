import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

torch.manual_seed(0)


class SentimentGRU(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(30, 10, padding_idx=0)
        self.gru = nn.GRU(10, 12, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(24, 1)

    def forward(self, ids, lengths):
        packed = pack_padded_sequence(self.emb(ids), lengths, batch_first=True, enforce_sorted=False)
        out, _ = self.gru(packed)
        out, n = pad_packed_sequence(out, batch_first=True)
        mask = (torch.arange(out.size(1))[None] < n[:, None]).unsqueeze(-1)
        pooled = (out * mask).sum(1) / n[:, None]
        return self.fc(pooled).squeeze(1)


def collate(k):
    seqs = [torch.randint(1, 30, (int(torch.randint(2, 9, ())),)) for _ in range(k)]
    y = torch.tensor([float(s.float().mean() > 15) for s in seqs])
    return pad_sequence(seqs, batch_first=True), torch.tensor([len(s) for s in seqs]), y


model = SentimentGRU()
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
loss_fn = nn.BCEWithLogitsLoss()
for step in range(8):
    ids, lengths, y = collate(12)
    logits = model(ids, lengths)
    loss = loss_fn(logits, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, loss.item(), ((logits > 0).float() == y).float().mean().item())
