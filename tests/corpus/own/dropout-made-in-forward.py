# /// case
# category = "mode"
# kind = "dropout-always-on"
# severity = "warning"
# names = ["x"]
# ///
#-
import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(30, 12)
        self.lstm = nn.LSTM(12, 10, batch_first=True, bidirectional=True)
#+         self.drop = nn.Dropout(0.4)
        self.out = nn.Linear(20, 5)

    def forward(self, ids):
        x, _ = self.lstm(self.emb(ids))
        x = nn.Dropout(0.4)(x)  #- here
#+         x = self.drop(x)
        return self.out(x)


torch.manual_seed(0)
tagger = Tagger()
opt = torch.optim.Adam(tagger.parameters(), lr=1e-2)
for epoch in range(3):
    tagger.train()
    for _ in range(3):
        ids = torch.randint(0, 30, (4, 7))
        loss = nn.functional.cross_entropy(tagger(ids).flatten(0, 1), (ids % 5).flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
    tagger.eval()
    with torch.no_grad():
        held = torch.randint(0, 30, (20, 7))
        print(epoch, (tagger(held).argmax(-1) == held % 5).float().mean().item())
