import torch
from torch import nn


class TinyLM(nn.Module):
    def __init__(self, vocab=24, dim=12):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.lm_head = nn.Linear(dim, vocab, bias=False)
        self.tie_weights()

    def tie_weights(self):
        self.lm_head.weight = nn.Parameter(self.embed.weight.clone())

    def forward(self, ids):
        return self.lm_head(self.rnn(self.embed(ids))[0])


torch.manual_seed(9)
model = TinyLM()
opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
for _ in range(5):
    ids = torch.randint(0, 24, (4, 9))
    loss = nn.functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
