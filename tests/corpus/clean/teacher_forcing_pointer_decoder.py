import random

import torch
import torch.nn.functional as F
from torch import nn

random.seed(0)
torch.manual_seed(0)
V, H, MAX = 9, 16, 6
SOS, EOS = 0, 1


class EncoderRNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.gru = nn.Embedding(V, H), nn.GRU(H, H, batch_first=True)

    def forward(self, x):
        return self.gru(self.embedding(x))


class AttnDecoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.gru = nn.Embedding(V, H), nn.GRU(2 * H, H, batch_first=True)
        self.Wa, self.Ua, self.Va = nn.Linear(H, H), nn.Linear(H, H), nn.Linear(H, 1)
        self.out = nn.Linear(H, V)

    def forward(self, enc, hidden, target=None):
        inp = torch.full((enc.size(0), 1), SOS)
        outs = []
        for i in range(MAX):
            q = hidden.permute(1, 0, 2)
            w = F.softmax(self.Va(torch.tanh(self.Wa(q) + self.Ua(enc))).squeeze(2).unsqueeze(1), dim=-1)
            o, hidden = self.gru(torch.cat((self.embedding(inp), torch.bmm(w, enc)), 2), hidden)
            o = self.out(o)
            outs.append(o)
            if target is not None:
                inp = target[:, i].unsqueeze(1)
            else:
                _, topi = o.topk(1)
                inp = topi.squeeze(-1).detach()
        return F.log_softmax(torch.cat(outs, 1), -1)


enc, dec = EncoderRNN(), AttnDecoder()
enc_opt, dec_opt = torch.optim.Adam(enc.parameters(), 1e-2), torch.optim.Adam(dec.parameters(), 1e-2)
criterion = nn.NLLLoss()
for it in range(8):
    src = torch.randint(2, V, (8, MAX - 1))
    tgt = torch.cat([src.flip(1), torch.full((8, 1), EOS)], 1)
    enc_opt.zero_grad()
    dec_opt.zero_grad()
    o, h = enc(src)
    out = dec(o, h, tgt if random.random() < 0.5 else None)
    loss = criterion(out.view(-1, V), tgt.view(-1))
    loss.backward()
    enc_opt.step()
    dec_opt.step()
    print(it, loss.item())
