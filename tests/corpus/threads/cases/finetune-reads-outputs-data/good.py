import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, vocab, width):
        super().__init__()
        self.table = nn.Embedding(vocab, width)
        self.rnn = nn.LSTM(width, width, batch_first=True)

    def forward(self, ids):
        outputs, _ = self.rnn(self.table(ids))
        return outputs[:, -1]


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder(50, 12)
        self.head = nn.Linear(12, 2)

    def forward(self, ids):
        return self.head(self.encoder(ids))


torch.manual_seed(0)
model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
loss_fn = nn.CrossEntropyLoss()
for epoch in range(5):
    ids, labels = torch.randint(0, 50, (16, 9)), torch.randint(0, 2, (16,))
    optimizer.zero_grad()
    loss = loss_fn(model(ids), labels)
    loss.backward()
    optimizer.step()
print(loss.item())
