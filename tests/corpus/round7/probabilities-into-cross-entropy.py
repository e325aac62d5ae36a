# /// case
# title = "CrossEntropyLoss gets the output of a Softmax layer"
# category = "loss"
# kind = "double-softmax"
# kinds_also_ok = ["softmax-before-cross-entropy"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["Softmax", "CrossEntropyLoss", "criterion"]
# symptom = "the loss cannot go below 0.55 for three classes, gradients are damped"
# symptom_check = "model(x).sum(dim=1).sub(1).abs().max().item() < 1e-4"
# cause = "CrossEntropyLoss applies log_softmax itself"
# fix = "drop the Softmax layer"
# ///
import torch
import torch.nn as nn


def build_mlp(sizes, dropout=0.1):
    layers = []
    for i, (fan_in, fan_out) in enumerate(zip(sizes[:-1], sizes[1:])):
        layers.append(nn.Linear(fan_in, fan_out))
        if i < len(sizes) - 2:
            layers.extend([nn.ReLU(inplace=True), nn.Dropout(dropout)])
    layers.append(nn.Softmax(dim=-1))  #- here
    return nn.Sequential(*layers)


def iris_like(n_per_class=20):
    means = torch.tensor([[5.0, 3.4, 1.5, 0.2], [5.9, 2.8, 4.3, 1.3], [6.6, 3.0, 5.6, 2.0]])
    x = means.repeat_interleave(n_per_class, 0) + 0.3 * torch.randn(3 * n_per_class, 4)
    return (x - x.mean(0)) / x.std(0), torch.arange(3).repeat_interleave(n_per_class)


torch.manual_seed(71)
x, y = iris_like()
model = build_mlp([4, 16, 16, 3])
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(6):
    model.train()
    for rows in torch.randperm(len(x)).split(20):
        loss = criterion(model(x[rows]), y[rows])  #! also
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        accuracy = (model(x).argmax(dim=1) == y).float().mean().item()
    print(epoch, loss.item(), accuracy)
