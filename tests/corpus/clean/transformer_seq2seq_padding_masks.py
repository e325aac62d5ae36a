import math

import torch
from torch import nn

torch.manual_seed(0)
PAD, BOS, EOS, V, D = 0, 1, 2, 14, 16


class PositionalEncoding(nn.Module):
    def __init__(self, d, max_len=30):
        super().__init__()
        pos = torch.arange(max_len).unsqueeze(1)
        div = torch.exp(torch.arange(0, d, 2) * (-math.log(10000.0) / d))
        pe = torch.zeros(max_len, d)
        pe[:, 0::2] = torch.sin(pos * div)
        pe[:, 1::2] = torch.cos(pos * div)
        self.register_buffer("pe", pe)

    def forward(self, x):
        return x + self.pe[: x.size(1)]


class Seq2Seq(nn.Module):
    def __init__(self):
        super().__init__()
        self.src, self.tgt = nn.Embedding(V, D, padding_idx=PAD), nn.Embedding(V, D, padding_idx=PAD)
        self.pe = PositionalEncoding(D)
        self.t = nn.Transformer(D, 2, 1, 1, 32, dropout=0.0, batch_first=True)
        self.gen = nn.Linear(D, V)

    def forward(self, src, tgt):
        mask = nn.Transformer.generate_square_subsequent_mask(tgt.size(1))
        h = self.t(
            self.pe(self.src(src) * math.sqrt(D)),
            self.pe(self.tgt(tgt) * math.sqrt(D)),
            tgt_mask=mask.isinf(),
            src_key_padding_mask=src == PAD,
            tgt_key_padding_mask=tgt == PAD,
            memory_key_padding_mask=src == PAD,
        )
        return self.gen(h)


def batch(n=8):
    src, tgt = torch.full((n, 8), PAD), torch.full((n, 10), PAD)
    for i in range(n):
        k = int(torch.randint(3, 9, ()))
        s = torch.randint(3, V, (k,))
        src[i, :k] = s
        tgt[i, : k + 2] = torch.cat([torch.tensor([BOS]), s.flip(0), torch.tensor([EOS])])
    return src, tgt


model = Seq2Seq()
for p in model.parameters():
    if p.dim() > 1:
        nn.init.xavier_uniform_(p)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.98), eps=1e-9)
criterion = nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=0.1)
for step in range(6):
    src, tgt = batch()
    logits = model(src, tgt[:, :-1])
    loss = criterion(logits.reshape(-1, V), tgt[:, 1:].reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
