# /// case
# title = "A deep GCN adds up its neighbours without the degree normalisation"
# category = "scale"
# kind = "unnormalised-aggregation-explodes"
# kinds_also_ok = ["exploding-gradients", "exploding-activations", "missing-normalisation"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["propagation", "adjacency", "degree"]
# symptom = "activations and gradients grow by the degree at every layer"
# symptom_check = 'record["gradient"][0] > 1000'
# cause = "the propagation matrix is A + I as it is, so every layer multiplies by about the mean degree."
# fix = "use the symmetrically normalised matrix"
# ///
import torch
from torch import nn
import torch.nn.functional as F


def stochastic_block_model(sizes, inside, across):
    block = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    chance = torch.where(block[:, None] == block, inside, across)
    upper = torch.bernoulli(chance).triu(1)
    return upper + upper.T, block


def propagation_matrix(adjacency):
    return adjacency + torch.eye(len(adjacency))  #- here
#+     looped = adjacency + torch.eye(len(adjacency))
#+     scale = looped.sum(1).rsqrt()
#+     return scale[:, None] * looped * scale


class GraphConvolution(nn.Module):
    def __init__(self, inputs, outputs, activate=True):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(outputs))
        nn.init.kaiming_normal_(self.weight.T, nonlinearity="relu" if activate else "linear")
        self.activate = activate

    def forward(self, h, propagate):
        h = propagate @ (h @ self.weight) + self.bias  #! also
        return h.relu() if self.activate else h


class DeepGCN(nn.Module):
    def __init__(self, inputs, classes, width=24, depth=6):
        super().__init__()
        widths = [inputs] + [width] * (depth - 1)
        self.layers = nn.ModuleList(GraphConvolution(a, b) for a, b in zip(widths, widths[1:]))
        self.readout = GraphConvolution(width, classes, activate=False)

    def forward(self, x, propagate):
        for layer in self.layers:
            x = layer(x, propagate)
        return self.readout(x, propagate)


@torch.no_grad()
def accuracy(model, x, propagate, labels, rows):
    model.eval()
    hit = model(x, propagate).argmax(1) == labels
    model.train()
    return hit[rows].float().mean().item()


torch.manual_seed(2)
adjacency, labels = stochastic_block_model([40, 40, 40], inside=torch.tensor(0.25), across=torch.tensor(0.02))
features = F.one_hot(labels, 3).float() + 1.0 * torch.randn(120, 3)
features = torch.cat([features, torch.randn(120, 5)], 1)
propagate = propagation_matrix(adjacency)  #! also
shuffled = torch.randperm(120)
labelled, test = shuffled[:30], shuffled[60:]
model = DeepGCN(8, 3)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, weight_decay=5e-4)
record = {"loss": [], "gradient": []}
for epoch in range(80):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(features, propagate)[labelled], labels[labelled])
    loss.backward()
    norm = torch.cat([p.grad.flatten() for p in model.parameters()]).norm()
    optimizer.step()
    record["loss"].append(loss.item())
    record["gradient"].append(norm.item())
    if epoch % 20 == 0:
        print(f"{epoch:3d} loss {loss.item():.4g} gradient {norm.item():.4g}")
print(f"accuracy {accuracy(model, features, propagate, labels, test):.3f}")
