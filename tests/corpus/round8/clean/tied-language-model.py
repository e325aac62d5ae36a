import torch
import torch.nn as nn
import torch.nn.functional as F


class Tied(nn.Module):
    def __init__(self, vocab, width):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.out = nn.Linear(width, vocab, bias=False)
        self.out.weight = self.embed.weight
        nn.init.normal_(self.embed.weight, std=width ** -0.5)

    def forward(self, tokens):
        return self.out(self.rnn(self.embed(tokens))[0])


def batches(text, length, count):
    for _ in range(count):
        at = torch.randint(0, len(text) - length - 1, (12, 1)) + torch.arange(length + 1)
        chunk = text[at]
        yield chunk[:, :-1], chunk[:, 1:]


torch.manual_seed(22)
text = (torch.arange(600) * 7 % 23 + torch.arange(600) % 2) % 23
model = Tied(23, 16)
decayed = [p for n, p in model.named_parameters() if p.dim() > 1]
plain = [p for n, p in model.named_parameters() if p.dim() <= 1]
optimizer = torch.optim.AdamW([{"params": decayed}, {"params": plain, "weight_decay": 0.0}], lr=1e-2)
for step, (x, y) in enumerate(batches(text, 15, 18)):
    loss = F.cross_entropy(model(x).transpose(1, 2), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 6 == 0:
        print(step, loss.item())
