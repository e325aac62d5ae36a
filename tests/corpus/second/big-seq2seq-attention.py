# /// case
# title = "Seq2seq with attention: the encoder memory is detached when cached and the bridge is absent"
# category = "graph-break"
# kind = "graph-break-detach"
# severity = "warning"
# names = ["memory"]
# difficulty = "hard"
# symptom = "silent: every encoder parameter keeps grad None"
# symptom_check = "all(p.grad is None for p in model.encoder.parameters())"
# cause = "the cache helper detaches (meant for inference) and is used in training as well"
# fix = "detach only when not self.training"
# evidence = [
#     { url = "https://github.com/Tsinghua-MARS-Lab/DenseTNT/issues/11" },
#     { url = "https://github.com/facebookresearch/fairseq/issues/408" },
#     { url = "https://github.com/lebrice/Sequoia/issues/71" },
# ]
# ///
"""Toy translation model: reverse a digit string."""
import math

import torch
import torch.nn.functional as F
from torch import nn

PAD, BOS, EOS, FIRST = 0, 1, 2, 3
VOCAB = 12


def make_batch(n, length):
    src = torch.randint(FIRST, VOCAB, (n, length))
    tgt = torch.cat([src.flip(1), torch.full((n, 1), EOS)], dim=1)
    dec_in = torch.cat([torch.full((n, 1), BOS), tgt[:, :-1]], dim=1)
    return src, dec_in, tgt


class Encoder(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)

    def forward(self, src):
        out, _ = self.rnn(self.embed(src))
        return out


class Attention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(dim, dim, bias=False) for _ in range(3))

    def forward(self, query, memory):
        score = self.q(query) @ self.k(memory).transpose(1, 2) / math.sqrt(memory.size(-1))
        return score.softmax(-1) @ self.v(memory)


class Decoder(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.attend = Attention(dim)
        self.out = nn.Linear(2 * dim, VOCAB)

    def forward(self, tokens, memory):
        h, _ = self.rnn(self.embed(tokens))
        context = self.attend(h, memory)
        return self.out(torch.cat([h, context], dim=-1))


class Translator(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.encoder = Encoder(dim)
        self.decoder = Decoder(dim)
        self.cache = None

    def encode(self, src):
        memory = self.encoder(src)
        self.cache = memory.detach()  #! here
        return self.cache  #- here
#+         return memory

    def forward(self, src, dec_in):
        memory = self.encode(src)
        return self.decoder(dec_in, memory)

    @torch.no_grad()
    def greedy(self, src, steps):
        memory = self.encode(src)
        tokens = torch.full((src.size(0), 1), BOS)
        for _ in range(steps):
            logits = self.decoder(tokens, memory)[:, -1]
            tokens = torch.cat([tokens, logits.argmax(-1, keepdim=True)], dim=1)
        return tokens[:, 1:]


torch.manual_seed(0)
model = Translator()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(8):
    src, dec_in, tgt = make_batch(16, 5)
    logits = model(src, dec_in)
    loss = F.cross_entropy(logits.flatten(0, 1), tgt.flatten(), ignore_index=PAD)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step % 4 == 0:
        print(step, round(loss.item(), 3))
print(model.greedy(torch.randint(FIRST, VOCAB, (2, 5)), 6))
