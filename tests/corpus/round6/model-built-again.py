# /// case
# title = "The model is built again after the optimizer"
# category = "optimizer"
# kind = "optimizer-of-another-model"
# kinds_also_ok = ["parameter-not-in-optimizer"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["rnn", "optimizer"]
# symptom = "nothing trains"
# symptom_check = "not any(p is q for p in rnn.parameters() for q in optimizer.param_groups[0]['params'])"
# cause = "the optimizer holds the first network's parameters"
# fix = "make the optimizer of the second"
# evidence = [
#     { url = "https://github.com/spro/practical-pytorch/issues/9", title = "char-rnn-classification parameters update method confusion" },
# ]
# ///
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
optimizer = torch.optim.SGD(rnn.parameters(), lr=0.1)  #! also


def train(category, line):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(rnn(line), category)
    loss.backward()
    optimizer.step()
    return loss.item()


ids = torch.randint(0, LETTERS, (7, 50))
lines = nn.functional.one_hot(ids, LETTERS).float()
labels = ids[-1] % CATEGORIES

rnn = NameRNN(hidden=48)  #! here
#+ optimizer = torch.optim.SGD(rnn.parameters(), lr=0.1)
for it in range(20):
    value = train(labels, lines)
print(value)
