# /// case
# category = "wiring"
# kind = "parameters-not-in-optimizer"
# severity = "warning"
# names = ["head", "optimizer"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(30, 8)
        self.gru = nn.GRU(8, 12, batch_first=True)
        self.head = nn.Linear(12, 5)

    def forward(self, tokens):
        return self.head(self.gru(self.embed(tokens))[0])


tagger = Tagger()
optimizer = torch.optim.Adam([{"params": tagger.embed.parameters()}, {"params": tagger.gru.parameters(), "lr": 1e-3}], lr=1e-2)  #- here
#+ optimizer = torch.optim.Adam([{"params": tagger.embed.parameters()}, {"params": tagger.gru.parameters(), "lr": 1e-3}, {"params": tagger.head.parameters()}], lr=1e-2)
for _ in range(3):
    tokens, tags = torch.randint(0, 30, (4, 6)), torch.randint(0, 5, (4, 6))
    loss = nn.functional.cross_entropy(tagger(tokens).flatten(0, 1), tags.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
