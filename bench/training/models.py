"""The models that are trained under capture: `build(name)` gives a model and the arguments of one call, a loss.

Sizes are those of small experiments on a laptop, so that what capture costs is not hidden by arithmetic.
"""

import math
from itertools import pairwise

import torch
from torch import nn
from torch.nn.functional import cross_entropy


class Loss(nn.Module):
    """A network and its loss in one module."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, inputs, target):
        return cross_entropy(self.network(inputs), target)


class Residual(nn.Module):
    def __init__(self, width_in, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(width_in, width, 3, stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU()
        same = stride == 1 and width_in == width
        across = nn.Conv2d(width_in, width, 1, stride, bias=False)
        self.shortcut = nn.Identity() if same else nn.Sequential(across, nn.BatchNorm2d(width))

    def forward(self, x):
        out = self.relu(self.norm1(self.conv1(x)))
        out = self.norm2(self.conv2(out))
        return self.relu(out + self.shortcut(x))


class ResNet18(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU())
        blocks, width_in = [], 64
        for width in (64, 128, 256, 512):
            blocks.append(Residual(width_in, width, 1 if width == 64 else 2))
            blocks.append(Residual(width, width, 1))
            width_in = width
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(512, 10)

    def forward(self, x):
        features = self.blocks(self.stem(x))
        return self.head(features.mean(dim=(2, 3)))


class LanguageModel(nn.Module):
    """GPT-2 of the transformers library, 4 layers of 256, as its configuration makes it."""

    def __init__(self):
        from transformers import GPT2Config, GPT2LMHeadModel

        super().__init__()
        config = GPT2Config(vocab_size=1000, n_positions=64, n_embd=256, n_layer=4, n_head=4, use_cache=False)
        self.network = GPT2LMHeadModel(config)

    def forward(self, tokens, target):
        logits = self.network(input_ids=tokens).logits
        return cross_entropy(logits.flatten(0, 1), target.flatten())


class Characters(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(96, 64)
        self.lstm = nn.LSTM(64, 128, num_layers=2, batch_first=True)
        self.head = nn.Linear(128, 96)

    def forward(self, text):
        states, _ = self.lstm(self.embedding(text))
        return self.head(states).flatten(0, 1)


class CharactersByStep(nn.Module):
    """The same in a Python loop over a cell: many small operations."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(96, 64)
        self.cell = nn.LSTMCell(64, 128)
        self.head = nn.Linear(128, 96)

    def forward(self, text):
        embedded = self.embedding(text)
        hidden = cell = torch.zeros(len(text), 128)
        states = []
        for step in range(text.shape[1]):
            hidden, cell = self.cell(embedded[:, step], (hidden, cell))
            states.append(hidden)
        return self.head(torch.stack(states, dim=1)).flatten(0, 1)


class Burgers(nn.Module):
    """A physics-informed network: the residual of Burgers' equation, which differentiates twice."""

    def __init__(self):
        super().__init__()
        layers = [nn.Linear(2, 64), nn.Tanh()]
        for _ in range(2):
            layers += [nn.Linear(64, 64), nn.Tanh()]
        self.network = nn.Sequential(*layers, nn.Linear(64, 1))

    def forward(self, x, t):
        x = x.clone().requires_grad_()
        t = t.clone().requires_grad_()
        u = self.network(torch.cat([x, t], dim=1))
        ones = torch.ones_like(u)
        (u_x,) = torch.autograd.grad(u, x, ones, create_graph=True)
        (u_t,) = torch.autograd.grad(u, t, ones, create_graph=True)
        (u_xx,) = torch.autograd.grad(u_x, x, ones, create_graph=True)
        residual = u_t + u * u_x - 0.01 / math.pi * u_xx
        return residual.pow(2).mean()


class Tiny(nn.Module):
    """Seven operations on 8 x 8."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8))

    def forward(self, x):
        h = x @ self.weight
        h = h + 1
        h = h.tanh()
        h = h * x
        h = h - 0.5
        h = h.sigmoid()
        return h.sum()


class Numbers(nn.Module):
    """Two thousand statements on Python numbers for each operation on a tensor."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))

    def forward(self, x):
        total = 0
        for number in range(1000):
            total = total + number
        return (self.weight * x).sum() * (total * 0 + 1)


def images(*shape):
    return torch.randn(*shape), torch.randint(0, 10, shape[:1])


def text(batch, length, kinds, *, flat):
    target = torch.randint(0, kinds, (batch, length))
    return torch.randint(0, kinds, (batch, length)), target.flatten() if flat else target


def perceptron(*widths):
    layers = []
    for width_in, width in pairwise(widths):
        layers += [nn.Linear(width_in, width), nn.ReLU()]
    return Loss(nn.Sequential(*layers[:-1]))


BUILD = {
    "mlp": lambda: (perceptron(784, 512, 512, 10), images(64, 784)),
    "resnet18": lambda: (Loss(ResNet18()), images(4, 3, 32, 32)),
    "gpt2": lambda: (LanguageModel(), text(4, 64, 1000, flat=False)),
    "charrnn": lambda: (Loss(Characters()), text(16, 64, 96, flat=True)),
    "pinn": lambda: (Burgers(), (torch.rand(1000, 1), torch.rand(1000, 1))),
    "lstmcell": lambda: (Loss(CharactersByStep()), text(16, 32, 96, flat=True)),
    "tiny": lambda: (Tiny(), (torch.randn(8, 8),)),
    "mlp10": lambda: (perceptron(10, 32, 2), (torch.randn(16, 10), torch.randint(0, 2, (16,)))),
    "numbers": lambda: (Numbers(), (torch.ones(1),)),
}


def build(name):
    torch.manual_seed(0)
    return BUILD[name]()
