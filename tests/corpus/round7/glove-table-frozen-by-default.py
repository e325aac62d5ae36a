# /// case
# title = "from_pretrained freezes the word vectors that should be tuned"
# category = "flags"
# kind = "embedding-frozen-by-default"
# kinds_also_ok = ["frozen-parameter-in-optimizer", "parameter-without-gradient"]
# severity = "warning"
# names = ["from_pretrained", "embedding"]
# symptom = "the embedding has a learning rate of its own but never moves"
# symptom_check = "torch.equal(tagger.embedding.weight, vectors)"
# cause = "freeze=True is the default"
# fix = "freeze=False"
# ///
import torch
import torch.nn as nn


class Tagger(nn.Module):
    def __init__(self, vectors, hidden, tags):
        super().__init__()
        self.embedding = nn.Embedding.from_pretrained(vectors.clone())  #- here
#+         self.embedding = nn.Embedding.from_pretrained(vectors.clone(), freeze=False)
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
optimizer = torch.optim.Adam([  #! also
    {"params": table, "lr": 1e-3},  #! also
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
