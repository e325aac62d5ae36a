# /// case
# title = "The padding row of a trainable table is written in the forward pass"
# category = "in-place"
# kind = "in-place-on-leaf"
# kinds_also_ok = ["leaf-modified-in-place"]
# severity = "error"
# names = ["table", "weight"]
# symptom = "the first forward pass raises"
# raises = "RuntimeError"
# raises_message = "a leaf Variable that requires grad"
# cause = "a leaf that requires grad is written while autograd records"
# fix = "no_grad"
# ///
import torch
import torch.nn as nn


class BagOfWords(nn.Module):
    PAD = 0

    def __init__(self, vocab, dim, classes):
        super().__init__()
        self.table = nn.Embedding(vocab, dim)
        self.out = nn.Linear(dim, classes)

    def forward(self, tokens):
        self.table.weight[self.PAD] = 0.0  #- here
#+         with torch.no_grad():
#+             self.table.weight[self.PAD] = 0.0
        lengths = (tokens != self.PAD).sum(dim=1, keepdim=True).clamp(min=1)
        return self.out(self.table(tokens).sum(dim=1) / lengths)


def collate(examples, pad=0):
    width = max(len(words) for words, _ in examples)
    tokens = torch.tensor([words + [pad] * (width - len(words)) for words, _ in examples])
    return tokens, torch.tensor([label for _, label in examples])


torch.manual_seed(47)
corpus = [(torch.randint(1, 25, (int(n),)).tolist(), int(n) % 2) for n in torch.randint(2, 8, (30,))]
loader = torch.utils.data.DataLoader(corpus, batch_size=6, shuffle=True, collate_fn=collate)
model = BagOfWords(25, 8, 2)
optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)
for epoch in range(2):
    for tokens, labels in loader:
        loss = nn.functional.cross_entropy(model(tokens), labels)  #! also
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
