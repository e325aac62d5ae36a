# /// case
# title = "The heads of a multi-task network are kept in a plain dict"
# category = "optimizer"
# kind = "submodules-not-registered"
# kinds_also_ok = ["parameter-not-in-optimizer", "modules-in-plain-dict", "parameter-not-registered"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["heads", "ModuleDict", "optimizer"]
# symptom = "the heads are not among model.parameters(): never updated, their gradients never cleared"
# symptom_check = "not any(p is q for g in optimizer.param_groups for q in g['params'] for h in model.heads.values() for p in h.parameters())"
# cause = "Modules in a plain dict are not registered."
# fix = "nn.ModuleDict"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F

HEADS = {"topic": 6, "urgency": 3, "language": 4}


class TicketModel(nn.Module):
    def __init__(self, vocab, width, heads):
        super().__init__()
        self.words = nn.Embedding(vocab, width, padding_idx=0)
        self.mixer = nn.Sequential(nn.Linear(width, width), nn.LayerNorm(width), nn.ReLU())
        self.heads = {name: nn.Linear(width, classes) for name, classes in heads.items()}  #- here
#+         self.heads = nn.ModuleDict({name: nn.Linear(width, classes) for name, classes in heads.items()})

    def embed(self, ids):
        keep = (ids != 0).float().unsqueeze(-1)
        return (self.words(ids) * keep).sum(1) / keep.sum(1).clamp(min=1)

    def forward(self, ids):
        shared = self.mixer(self.embed(ids))
        return {name: head(shared) for name, head in self.heads.items()}  #! also


def sample_tickets(count, generator):
    ids = torch.randint(1, 120, (count, 10), generator=generator)
    lengths = torch.randint(2, 11, (count, 1), generator=generator)
    ids = ids * (torch.arange(10) < lengths)
    return ids, {name: F.one_hot(ids % classes, classes).sum(1).argmax(1) for name, classes in HEADS.items()}


def total_loss(outputs, targets, weights):
    parts = {name: F.cross_entropy(outputs[name], targets[name]) for name in outputs}
    return sum(weights[name] * value for name, value in parts.items()), parts


def train(steps=24, lr=1e-2, seed=9):
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model = TicketModel(120, 24, HEADS)
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)  #! also
    weights = dict(topic=1.0, urgency=0.5, language=0.5)
    for step in range(steps):
        ids, targets = sample_tickets(48, generator)
        loss, parts = total_loss(model(ids), targets, weights)
        model.zero_grad()  #! also
        loss.backward()
        optimizer.step()  #! also
        if step % 8 == 7:
            print(step, {name: round(value.item(), 3) for name, value in parts.items()})
    return model, optimizer


model, optimizer = train()
