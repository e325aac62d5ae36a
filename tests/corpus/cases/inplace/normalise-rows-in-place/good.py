import torch
from torch import nn

torch.manual_seed(0)
encoder = nn.Linear(5, 3)


def embed(x):
    features = encoder(x).exp()
    total = features.sum(1, keepdim=True)
    features = features / total
    return features


similarity = embed(torch.randn(4, 5)) @ embed(torch.randn(4, 5)).t()
similarity.diag().sum().backward()
print(encoder.weight.grad)
