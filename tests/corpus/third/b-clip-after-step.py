# /// case
# title = "Gradients are clipped after the optimizer step"
# category = "gradient-clipping"
# kind = "clip-after-step"
# severity = "warning"
# names = ["clip_grad_norm_", "optimizer"]
# difficulty = "medium"
# symptom = "Clipping has no effect, the norm logged is above max_norm and spikes go into the weights; silent."
# symptom_check = "max(moves) > 0.21"
# cause = "clip_grad_norm_ is called after optimizer.step(); the clipped gradients are deleted by the next zero_grad."
# fix = "Clip between backward and step."
# evidence = [{ url = "https://github.com/VGraphRNN/VGRNN/issues/4" }]
# ///
import torch
from torch import nn

torch.manual_seed(3)


class CharGRU(nn.Module):
    def __init__(self, vocab=10, dim=16):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.cell = nn.GRUCell(dim, dim)
        self.out = nn.Linear(dim, vocab)

    def forward(self, ids):
        h = self.emb.weight.new_zeros(ids.shape[0], self.cell.hidden_size)
        logits = []
        for t in range(ids.shape[1]):
            h = self.cell(self.emb(ids[:, t]), h)
            logits.append(self.out(h))
        return torch.stack(logits, 1)


model = CharGRU()
optimizer = torch.optim.SGD(model.parameters(), lr=2.0)
moves = []
for step in range(30):
    first = torch.randint(0, 10, (24, 1))
    ids = (first + 3 * torch.arange(9)) % 10
    before = torch.cat([p.detach().flatten() for p in model.parameters()])
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(ids[:, :-1]).transpose(1, 2), ids[:, 1:])
    loss.backward()  #! here
#+     torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    optimizer.step()  #! here
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)  #- here
    after = torch.cat([p.detach().flatten() for p in model.parameters()])
    moves.append((after - before).norm().item())
print(loss.item(), "largest move", max(moves))
