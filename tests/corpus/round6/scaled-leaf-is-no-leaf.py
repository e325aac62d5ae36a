# /// case
# title = "A scaled tensor is given to the optimizer"
# category = "leaf"
# kind = "non-leaf-optimized"
# kinds_also_ok = ["leaf-lost"]
# severity = "error"
# names = ["requires_grad", "scale"]
# symptom = "the optimizer raises"
# raises = "ValueError"
# raises_message = "non-leaf"
# cause = "the product is no leaf"
# fix = "scale first"
# ///
import torch


def glorot(n_in, n_out):
    scale = (2 / (n_in + n_out)) ** 0.5
    return torch.randn(n_in, n_out, requires_grad=True) * scale  #- here
#+     return (torch.randn(n_in, n_out) * scale).requires_grad_()


class MatrixFactorization:
    def __init__(self, users, items, rank=4):
        self.u = glorot(users, rank)
        self.v = glorot(items, rank)
        self.bias = torch.zeros(items, requires_grad=True)

    def parameters(self):
        return [self.u, self.v, self.bias]

    def __call__(self, i, j):
        return (self.u[i] * self.v[j]).sum(-1) + self.bias[j]


torch.manual_seed(20)
model = MatrixFactorization(30, 12)
optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)  #! also
i, j = torch.randint(0, 30, (200,)), torch.randint(0, 12, (200,))
rating = torch.rand(200) * 5
for epoch in range(10):
    optimizer.zero_grad()
    loss = (model(i, j) - rating).pow(2).mean() + 1e-3 * model.u.pow(2).mean()
    loss.backward()
    optimizer.step()
print(loss.item())
