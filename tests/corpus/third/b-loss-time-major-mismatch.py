# /// case
# title = "Logits are flattened time-major, targets batch-major"
# category = "data"
# kind = "labels-misaligned"
# severity = "warning"
# names = ["logits", "targets", "flatten"]
# difficulty = "hard"
# symptom = "Loss stalls at the entropy of the label marginal; gradients are healthy."
# symptom_check = "log[-1] > 0.9"
# cause = "The GRU returns [T, B, V]; the targets are [B, T]. Both are flattened, so position i of the logits meets another token's label."
# fix = "Transpose the logits to [B, T, V] before flattening."
# evidence = [{ url = "https://github.com/xudonmao/VMT/issues/1" }, { url = "https://github.com/mlcommons/GaNDLF/pull/870" }]
# ///
"""Part-of-speech style tagger on synthetic sequences (time-major GRU)."""
import torch
import torch.nn.functional as F
from torch import nn


class Tagger(nn.Module):
    def __init__(self, vocab, tags, dim=16):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, bidirectional=True)  #! also
        self.out = nn.Linear(2 * dim, tags)

    def forward(self, tokens):
        h, _ = self.rnn(self.emb(tokens.t()))  #! also
        return self.out(h)  #! here


class TaggingData:
    def __init__(self, vocab=30, tags=4, seed=0):
        self.g = torch.Generator().manual_seed(seed)
        self.vocab, self.table = vocab, torch.randint(0, tags, (vocab,), generator=self.g)

    def batch(self, n=20, length=9):
        tokens = torch.randint(0, self.vocab, (n, length), generator=self.g)
        return tokens, self.table[tokens]


def train_tagger(steps=35):
    data = TaggingData()
    tagger = Tagger(30, 4)
    opt = torch.optim.Adam(tagger.parameters(), lr=2e-2)
    log = []
    for _ in range(steps):
        tokens, targets = data.batch()
        logits = tagger(tokens)  #- here
#+         logits = tagger(tokens).transpose(0, 1)
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())  #! here
        opt.zero_grad()
        loss.backward()
        opt.step()
        log.append(loss.item())
    return tagger, log


torch.manual_seed(0)
tagger, log = train_tagger()
print(log[0], "->", log[-1])
