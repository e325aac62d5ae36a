# /// case
# title = "padding_idx=0 freezes a real entity"
# category = "data"
# kind = "embedding-row-frozen-by-padding-idx"
# severity = "warning"
# names = ["padding_idx", "entity", "relation"]
# difficulty = "hard"
# symptom = "Entity 0 and relation 0 keep the zero vector; everything else trains; silent."
# symptom_check = "model.entity.weight[0].abs().sum().item() == 0"
# cause = "padding_idx=0 is set although index 0 is an ordinary entity; this row starts at zero and gets no gradient."
# fix = "Do not set padding_idx."
# evidence = [{ url = "https://github.com/ibalazevic/TuckER/issues/17" }, { url = "https://github.com/FGA-DIKU/BONSAI/issues/168" }]
# ///
"""Knowledge-graph completion with DistMult and sampled negatives."""
import torch
import torch.nn.functional as F
from torch import nn

N_ENTITY, N_RELATION = 24, 3


class DistMult(nn.Module):
    def __init__(self, entities, relations, dim=16):
        super().__init__()
        self.entity = nn.Embedding(entities, dim, padding_idx=0)  #- here
#+         self.entity = nn.Embedding(entities, dim)
        self.relation = nn.Embedding(relations, dim)
        self.reset_parameters()

    def reset_parameters(self):
        with torch.no_grad():
            self.entity.weight.mul_(0.5)

    def forward(self, h, r, t):
        return (self.entity(h) * self.relation(r) * self.entity(t)).sum(-1)  #! also


class TripleStore:
    """Ring-shaped toy graph: (h, r, h + step[r])."""

    def __init__(self, seed):
        self.g = torch.Generator().manual_seed(seed)
        self.step = torch.tensor([1, 5, 8])

    def sample(self, n):
        h = torch.randint(0, N_ENTITY, (n,), generator=self.g)
        r = torch.randint(0, N_RELATION, (n,), generator=self.g)
        t = (h + self.step[r]) % N_ENTITY
        corrupt = torch.randint(0, N_ENTITY, (n,), generator=self.g)
        return h, r, t, corrupt


torch.manual_seed(0)
store, model = TripleStore(seed=1), DistMult(N_ENTITY, N_RELATION)  #! also
opt = torch.optim.Adagrad(model.parameters(), lr=0.1)
for step in range(60):
    h, r, t, c = store.sample(64)
    pos, neg = model(h, r, t), model(h, r, c)
    loss = F.softplus(-pos).mean() + F.softplus(neg).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print("loss", loss.item(), "norm of entity 0", model.entity.weight[0].norm().item())
