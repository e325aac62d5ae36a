import torch
from torch import nn
import torch.nn.functional as F


def make_encoder():
    return nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 16))


def corrupt(x, share=0.3):
    return x * (torch.rand_like(x) > share)


def pretrain(encoder, data, epochs=2):
    decoder = nn.Linear(16, 12)
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=5e-3)
    for _ in range(epochs):
        for batch in data.split(50):
            loss = F.mse_loss(decoder(encoder(corrupt(batch))), batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return loss.item()


def linear_probe(encoder, data, labels, epochs=5):
    encoder.requires_grad_(False)
    model = nn.Sequential(encoder, nn.Linear(16, int(labels.max()) + 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(epochs):
        for rows in torch.randperm(len(data)).split(50):
            loss = F.cross_entropy(model(data[rows]), labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        return (model(data).argmax(1) == labels).float().mean().item()


torch.manual_seed(19)
labels = torch.randint(0, 4, (150,))
data = torch.randn(4, 12)[labels] + 0.7 * torch.randn(150, 12)
encoder = make_encoder()
print("pretraining", pretrain(encoder, data))
features = encoder(data).detach()
print("probe accuracy", linear_probe(encoder, data, labels))
