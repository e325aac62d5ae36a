import torch
import torch.nn as nn

CATEGORIES = 5
LETTERS = 26


class NameRNN(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.hidden = hidden
        self.i2h = nn.Linear(LETTERS + hidden, hidden)
        self.i2o = nn.Linear(LETTERS + hidden, CATEGORIES)

    def forward(self, line):
        h = torch.zeros(line.shape[1], self.hidden)
        for letter in line:
            both = torch.cat([letter, h], 1)
            h, out = torch.tanh(self.i2h(both)), self.i2o(both)
        return out


torch.manual_seed(9)
rnn = NameRNN()
optimizer = torch.optim.SGD(rnn.parameters(), lr=0.1)


def train(category, line):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(rnn(line), category)
    loss.backward()
    optimizer.step()
    return loss.item()


ids = torch.randint(0, LETTERS, (7, 50))
lines = nn.functional.one_hot(ids, LETTERS).float()
labels = ids[-1] % CATEGORIES

rnn = NameRNN(hidden=48)
for it in range(20):
    value = train(labels, lines)
print(value)
