import torch
import torch.nn as nn
import torch.nn.functional as F

VOCAB, BOS = 14, 0


class Copier(nn.Module):
    def __init__(self, width=20):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, width)
        self.encoder = nn.GRU(width, width, batch_first=True)
        self.cell = nn.GRUCell(width, width)
        self.out = nn.Linear(width, VOCAB)

    def forward(self, source, target, forcing):
        _, state = self.encoder(self.embed(source))
        state = state[0]
        token = torch.full((len(source),), BOS)
        loss = torch.zeros(())
        for t in range(target.shape[1]):
            state = self.cell(self.embed(token), state)
            logits = self.out(state)
            loss = loss + F.cross_entropy(logits, target[:, t])
            own = logits.argmax(1)
            use_truth = torch.rand(len(source)) < forcing
            token = torch.where(use_truth, target[:, t], own)
        return loss / target.shape[1]


torch.manual_seed(18)
model = Copier()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(20):
    source = torch.randint(1, VOCAB, (24, 5))
    loss = model(source, source.flip(1), forcing=1 - step / 40)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step % 5 == 0:
        print(step, loss.item())
