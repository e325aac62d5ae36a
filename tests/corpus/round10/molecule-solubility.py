# /// case
# title = "The sigmoid gate is scaled in place although its backward needs its result"
# category = "in-place"
# kind = "inplace-on-saved-output"
# kinds_also_ok = ["inplace-modification-of-saved-tensor", "inplace-op-breaks-backward", "version-mismatch"]
# severity = "error"
# names = ["gate", "sigmoid", "order"]
# symptom = "RuntimeError in the first backward"
# raises = "RuntimeError"
# raises_message = "modified by an inplace operation"
# cause = "Sigmoid keeps its result for backward and the multiplication overwrites it."
# fix = "gate = gate * order"
# ///
import torch
from torch import nn


class GatedConv(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.message = nn.Linear(dim, dim)
        self.gate = nn.Linear(2 * dim, dim)
        self.update = nn.GRUCell(dim, dim)

    def forward(self, h, bonds, order):
        src, dst = bonds
        gate = torch.sigmoid(self.gate(torch.cat([h[src], h[dst]], -1)))  #! also
        gate *= order[:, None]  #- here
#+         gate = gate * order[:, None]
        inbox = torch.zeros_like(h).index_add(0, dst, gate * self.message(h[src]))
        return self.update(inbox, h)


class SolubilityGNN(nn.Module):
    def __init__(self, elements=5, dim=24, layers=2):
        super().__init__()
        self.embed = nn.Embedding(elements, dim)
        self.layers = nn.ModuleList(GatedConv(dim) for _ in range(layers))
        self.readout = nn.Sequential(nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, 1))

    def forward(self, atoms, bonds, order, graph, count):
        h = self.embed(atoms)
        for layer in self.layers:
            h = layer(h, bonds, order)
        pooled = h.new_zeros(count, h.shape[1]).index_add(0, graph, h)
        return self.readout(pooled).squeeze(-1)


def molecule_batch(count, size=8):
    atoms = torch.randint(0, 5, (count * size,))
    graph = torch.arange(count).repeat_interleave(size)
    left = torch.arange(count * size - 1)[(torch.arange(1, count * size) % size) != 0]
    bonds = torch.stack([torch.cat([left, left + 1]), torch.cat([left + 1, left])])
    order = torch.tensor([1.0, 1.5, 2.0])[torch.randint(0, 3, left.shape)].repeat(2)
    polarity = torch.tensor([0.0, 0.8, -0.6, 0.3, -0.1])[atoms]
    target = torch.zeros(count).index_add(0, graph, polarity)
    return (atoms, bonds, order, graph, count), target


torch.manual_seed(12)
batches = [molecule_batch(16) for _ in range(6)]
model = SolubilityGNN()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
history = []
for epoch in range(6):
    for inputs, target in batches:
        loss = nn.functional.l1_loss(model(*inputs), target)
        optimizer.zero_grad()
        loss.backward()  #! also
        optimizer.step()
        history.append(loss.item())
print(history[0], history[-1])
