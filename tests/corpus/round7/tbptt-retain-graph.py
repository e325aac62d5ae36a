# /// case
# title = "The hidden state crosses chunks and retain_graph hides the first error"
# category = "retention"
# kind = "hidden-state-not-detached"
# kinds_also_ok = ["retain-graph-misuse", "backward-through-freed-graph", "version-mismatch"]
# severity = "error"
# names = ["hidden", "retain_graph"]
# symptom = "the second backward raises as the weights have changed in between"
# raises = "RuntimeError"
# raises_message = "modified by an inplace operation"
# cause = "the graph of the earlier chunk is gone through again after the optimizer has stepped"
# fix = "detach the state between chunks"
# ///
import torch
import torch.nn as nn


class CharModel(nn.Module):
    def __init__(self, vocab, dim=12, hidden=20):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, hidden, batch_first=True)
        self.proj = nn.Linear(hidden, vocab)

    def forward(self, tokens, hidden=None):
        out, hidden = self.rnn(self.embed(tokens), hidden)
        return self.proj(out), hidden


def chunks(stream, length):
    for start in range(0, stream.shape[1] - 1, length):
        x = stream[:, start:start + length]
        y = stream[:, start + 1:start + 1 + length]
        yield x[:, :y.shape[1]], y


torch.manual_seed(21)
text = "the quick brown fox jumps over the lazy dog " * 6
letters = sorted(set(text))
stream = torch.tensor([letters.index(c) for c in text]).view(4, -1)
model = CharModel(len(letters))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
hidden = None
for x, y in chunks(stream, 11):
    logits, hidden = model(x, hidden)  #! here
    loss = criterion(logits.flatten(0, 1), y.flatten())
    optimizer.zero_grad()
    loss.backward(retain_graph=True)  #- here
#+     loss.backward()
    optimizer.step()  #! also
#+     hidden = hidden.detach()
    print(loss.item())
