# /// case
# title = "Memory of a temporal graph network is not detached between batches"
# category = "retention"
# kind = "graph-carried-across-steps"
# kinds_also_ok = ["second-backward-freed-graph"]
# severity = "error"
# names = ["memory", "update", "detach"]
# symptom = "RuntimeError in the second batch"
# raises = "RuntimeError"
# raises_message = "backward through the graph a second time"
# cause = "the memory holds the graph of the batch before"
# fix = "detach the memory after each step"
# evidence = [
#     { url = "https://github.com/memgraph/mage/pull/121", title = "Temporal graph networks implementation" },
#     { url = "https://github.com/bfGraph/STGraph/issues/4", title = "Unable to Train TGCN model due to double backprop runtime error" },
# ]
# ///
import torch
import torch.nn as nn


class NodeMemory(nn.Module):
    def __init__(self, n_nodes, dim):
        super().__init__()
        self.cell = nn.GRUCell(dim + 1, dim)
        self.state = torch.zeros(n_nodes, dim)

    def get(self, nodes):
        return self.state[nodes]

    def update(self, nodes, message):
        new = self.cell(message, self.state[nodes])
        state = self.state.clone()
        state[nodes] = new
        self.state = state  #! here


class TGN(nn.Module):
    def __init__(self, n_nodes=20, dim=8):
        super().__init__()
        self.memory = NodeMemory(n_nodes, dim)
        self.embed = nn.Linear(dim, dim)
        self.score = nn.Bilinear(dim, dim, 1)

    def forward(self, src, dst, neg, time):
        z = {k: torch.tanh(self.embed(self.memory.get(v))) for k, v in (("s", src), ("d", dst), ("n", neg))}
        pos, neg_score = self.score(z["s"], z["d"]), self.score(z["s"], z["n"])
        self.memory.update(src, torch.cat([z["d"], time.unsqueeze(1)], 1))
        return pos, neg_score


torch.manual_seed(30)
model = TGN()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
criterion = nn.BCEWithLogitsLoss()
total = 0.0
for batch in range(5):
    src = torch.randperm(20)[:6]
    dst, neg = torch.randint(0, 20, (2, 6))
    pos, negative = model(src, dst, neg, torch.rand(6) + batch)
    loss = criterion(pos, torch.ones_like(pos)) + criterion(negative, torch.zeros_like(negative))
    optimizer.zero_grad()
    loss.backward()  #! also
    optimizer.step()  #! also
#+     model.memory.state = model.memory.state.detach()
    total += loss.item()
print(total)
