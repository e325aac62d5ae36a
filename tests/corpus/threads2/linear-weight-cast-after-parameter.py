# /// case
# title = "Parameter is converted after it was wrapped"
# category = "leaf"
# kind = "parameter-lost-on-move"
# kinds_also_ok = ["tensor-not-registered", "parameters-not-in-optimizer", "optimizer-given-nonleaf"]
# severity = "warning"
# names = ["weight", "Parameter", "double"]
# symptom = "the dense weights stay zero and are no parameter of the module"
# symptom_check = "'linear.weight' not in dict(model.named_parameters())"
# cause = ".to(dtype) of a Parameter is a plain tensor"
# fix = "make the tensor in its type, then wrap it"
# evidence = [
#     { url = "https://github.com/shenweichen/DeepCTR-Torch/pull/91", title = "fix regularization error" },
# ]
# ///
import torch
import torch.nn as nn


class LinearLogits(nn.Module):
    """Wide part: one weight for each value of a sparse feature, and a vector for dense ones."""

    def __init__(self, sparse_sizes, dense_dim, init_std=1e-2, dtype=torch.float64):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(n, 1, dtype=dtype) for n in sparse_sizes)
        for table in self.tables:
            nn.init.normal_(table.weight, std=init_std)
        self.weight = nn.Parameter(torch.zeros(dense_dim, 1)).to(dtype)  #- here
#+         self.weight = nn.Parameter(torch.zeros(dense_dim, 1, dtype=dtype))

    def forward(self, sparse, dense):
        logit = sum(t(sparse[:, i]) for i, t in enumerate(self.tables))
        return logit + dense @ self.weight


class DeepModel(nn.Module):
    def __init__(self, sparse_sizes, dense_dim):
        super().__init__()
        self.linear = LinearLogits(sparse_sizes, dense_dim)
        self.dnn = nn.Sequential(nn.Linear(dense_dim, 8), nn.ReLU(), nn.Linear(8, 1)).double()

    def forward(self, sparse, dense):
        return torch.sigmoid(self.linear(sparse, dense) + self.dnn(dense)).squeeze(1)


torch.manual_seed(18)
model = DeepModel([10, 5], 4)
optim = torch.optim.Adagrad(model.parameters(), lr=0.05)  #! also
for step in range(6):
    sparse = torch.stack([torch.randint(0, 10, (32,)), torch.randint(0, 5, (32,))], 1)
    dense = torch.randn(32, 4, dtype=torch.float64)
    y = (dense[:, 0] > 0).double()
    loss = nn.functional.binary_cross_entropy(model(sparse, dense), y)
    optim.zero_grad()
    loss.backward()
    optim.step()
print(loss.item(), len(list(model.parameters())))
