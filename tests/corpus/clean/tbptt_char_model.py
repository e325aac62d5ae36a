import torch
from torch import nn

torch.manual_seed(0)
text = "hello gradient world, hello leaves and graphs " * 4
chars = sorted(set(text))
ids = torch.tensor([chars.index(c) for c in text])


class CharLM(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.embed, self.rnn, self.out = nn.Embedding(n, 16), nn.LSTM(16, 24, batch_first=True), nn.Linear(24, n)

    def forward(self, x, state=None):
        y, state = self.rnn(self.embed(x), state)
        return self.out(y), state


lm = CharLM(len(chars))
opt = torch.optim.Adam(lm.parameters(), lr=5e-3)
state = None
for start in range(0, 120, 20):
    x, y = ids[start : start + 20][None], ids[start + 1 : start + 21][None]
    if state is not None:
        state = tuple(s.detach() for s in state)
    logits, state = lm(x, state)
    loss = nn.functional.cross_entropy(logits[0], y[0])
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(start, loss.item())
