# /// case
# category = "wiring"
# kind = "parameters-replaced-after-optimizer"
# severity = "warning"
# names = ["optimizer", "embed"]
# ///
#-
import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self, vocab, width=8, tags=3):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.out = nn.Linear(width, tags)

    def grow(self, extra):
        old = self.embed
        self.embed = nn.Embedding(old.num_embeddings + extra, old.embedding_dim)  #! also
        with torch.no_grad():
            self.embed.weight[: old.num_embeddings] = old.weight

    def forward(self, ids):
        return self.out(self.rnn(self.embed(ids))[0])


torch.manual_seed(0)
tagger = Tagger(10)
#+ tagger.grow(5)
optimizer = torch.optim.AdamW(tagger.parameters(), lr=1e-3)  #! here
tagger.grow(5)  #- also
for _ in range(4):
    ids = torch.randint(0, 15, (6, 9))
    scores = tagger(ids)
    loss = nn.functional.cross_entropy(scores.flatten(0, 1), ids.flatten() % 3)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
