# /// case
# title = "Seven sigmoid layers"
# category = "scale"
# kind = "vanishing-gradients"
# kinds_also_ok = ["saturating-activations", "deep-sigmoid-network", "vanishing-gradient"]
# severity = "warning"
# names = ["activation", "sigmoid", "fc0"]
# symptom = "the first layers get practically no gradient and the accuracy stays at chance"
# symptom_check = 'reports[-1]["fc0.weight"] < 1e-3 * reports[-1]["out.weight"]'
# cause = "each sigmoid multiplies the gradient by at most 1/4."
# fix = "ReLU instead of sigmoid"
# ///
from collections import OrderedDict
from dataclasses import dataclass, field

import torch
from torch import nn

ACTIVATIONS = {"sigmoid": nn.Sigmoid, "tanh": nn.Tanh, "relu": nn.ReLU}  #! also


@dataclass
class ModelConfig:
    n_features: int = 10
    hidden: list = field(default_factory=lambda: [48] * 7)  #! also
    activation: str = "sigmoid"  #- here
#+     activation: str = "relu"
    n_classes: int = 2


@dataclass
class TrainConfig:
    epochs: int = 24
    batch_size: int = 64
    lr: float = 0.1
    seed: int = 17


def build_model(cfg):
    layers = OrderedDict()
    width = cfg.n_features
    for i, h in enumerate(cfg.hidden):
        layers[f"fc{i}"] = nn.Linear(width, h)
        nn.init.xavier_uniform_(layers[f"fc{i}"].weight)
        layers[f"act{i}"] = ACTIVATIONS[cfg.activation]()  #! also
        width = h
    layers["out"] = nn.Linear(width, cfg.n_classes)
    return nn.Sequential(layers)


def dataset(n, cfg):
    x = torch.randn(n, cfg.n_features)
    y = (x[:, 0] * x[:, 1] + x[:, 2] > 0).long()
    return x, y


def grad_report(model):
    return {name: p.grad.norm().item() for name, p in model.named_parameters() if name.endswith("weight")}


def train(model, x, y, cfg):
    loss_fn = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=cfg.lr, momentum=0.9)
    reports = []
    for epoch in range(cfg.epochs):
        for idx in torch.randperm(len(x)).split(cfg.batch_size):
            optimizer.zero_grad()
            loss = loss_fn(model(x[idx]), y[idx])
            loss.backward()  #! also
            optimizer.step()
        reports.append(grad_report(model))
        if epoch % 6 == 0:
            with torch.no_grad():
                acc = (model(x).argmax(1) == y).float().mean()
            print(f"epoch {epoch}: loss {loss.item():.4f} accuracy {acc.item():.3f}")
    return reports


model_cfg, train_cfg = ModelConfig(), TrainConfig()
torch.manual_seed(train_cfg.seed)
torch.set_num_threads(1)
x, y = dataset(512, model_cfg)
model = build_model(model_cfg)
reports = train(model, x, y, train_cfg)
print({k: f"{v:.1e}" for k, v in reports[-1].items()})
