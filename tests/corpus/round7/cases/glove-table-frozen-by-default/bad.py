import torch
import torch.nn as nn


class Tagger(nn.Module):
    def __init__(self, vectors, hidden, tags):
        super().__init__()
        self.embedding = nn.Embedding.from_pretrained(vectors.clone())
        self.lstm = nn.LSTM(vectors.shape[1], hidden, batch_first=True, bidirectional=True)
        self.tag = nn.Linear(2 * hidden, tags)

    def forward(self, words):
        states, _ = self.lstm(self.embedding(words))
        return self.tag(states)


torch.manual_seed(31)
vectors = torch.randn(30, 10)
tagger = Tagger(vectors, hidden=8, tags=4)
table = list(tagger.embedding.parameters())
rest = [p for n, p in tagger.named_parameters() if not n.startswith("embedding")]
optimizer = torch.optim.Adam([
    {"params": table, "lr": 1e-3},
    {"params": rest, "lr": 5e-3},
])
criterion = nn.CrossEntropyLoss()
sentences = torch.randint(0, 30, (24, 7))
tags = sentences % 4
for epoch in range(3):
    for words, gold in zip(sentences.split(8), tags.split(8)):
        loss = criterion(tagger(words).transpose(1, 2), gold)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
