import torch
from torch import nn


def compute_loss(model, batch, weights):
    x, y = batch
    per_class = nn.functional.cross_entropy(model(x), y, weight=weights)
    smooth = model.weight.pow(2).sum()
    return per_class + 1e-4 * smooth


def main():
    torch.manual_seed(0)
    model = nn.Linear(10, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    weights = torch.tensor([1.0, 2.0, 2.0])
    for _ in range(5):
        batch = torch.randn(16, 10), torch.randint(0, 3, (16,))
        optimizer.zero_grad()
        loss = compute_loss(model, batch, weights)
        loss.backward()
        optimizer.step()


main()
