import torch
from torch import nn

torch.manual_seed(6)


class CharModel(nn.Module):
    def __init__(self, vocab=16, dim=24):
        super().__init__()
        self.emb, self.rnn, self.out = nn.Embedding(vocab, dim), nn.LSTM(dim, dim, batch_first=True), nn.Linear(dim, vocab)

    def forward(self, ids, state):
        h, state = self.rnn(self.emb(ids), state)
        return self.out(h), state


def repackage(state):
    return None if state is None else tuple(s.detach() for s in state)


text = torch.randint(0, 16, (4, 81))
model = CharModel()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
for epoch in range(2):
    state = None
    for i in range(0, 80, 20):
        state = repackage(state)
        logits, state = model(text[:, i:i + 20], state)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), text[:, i + 1:i + 21].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()
    print(epoch, loss.item())
