import torch
import torch.nn as nn


class TiedLM(nn.Module):
    def __init__(self, vocab=25, dim=16):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, vocab, bias=False)
        self.head.weight = self.embed.weight
        nn.init.normal_(self.embed.weight, std=0.1)

    def forward(self, ids):
        return self.head(self.rnn(self.embed(ids))[0])


torch.manual_seed(14)
model = TiedLM()
assert len(list(model.parameters())) == 5
opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
for it in range(10):
    ids = (torch.randint(0, 25, (16, 1)) + torch.arange(9)) % 25
    logits = model(ids[:, :-1])
    loss = nn.functional.cross_entropy(logits.transpose(1, 2), ids[:, 1:])
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
