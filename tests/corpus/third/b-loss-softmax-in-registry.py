# /// case
# title = "Config adds a softmax head in front of cross entropy"
# category = "loss-wiring"
# kind = "double-softmax"
# severity = "warning"
# names = ["softmax", "model", "criterion"]
# difficulty = "medium"
# symptom = "Loss falls slowly and cannot go below about 0.74 for three classes; silent."
# symptom_check = "isinstance(model[-1], torch.nn.Softmax) and min(losses) > 0.55"
# cause = "The config builds a Softmax as the last layer and nn.CrossEntropyLoss applies log_softmax again; gradients are squashed."
# fix = "Return logits (no softmax entry in the head)."
# evidence = [{ url = "https://github.com/ariecattan/SciCo/issues/2" }, { url = "https://github.com/bowang-lab/Transformer-GCN-QA/pull/32" }, { url = "https://github.com/Lightning-Universe/lightning-bolts/issues/654" }]
# ///
"""Model zoo with a layer registry; everything is described by a config."""
import torch
from torch import nn

REGISTRY = {}


def register(name):
    def deco(fn):
        REGISTRY[name] = fn
        return fn

    return deco


@register("dense")
def dense(i, o):
    return nn.Linear(i, o)


@register("norm")
def norm(i):
    return nn.LayerNorm(i)


@register("relu")
def relu():
    return nn.ReLU()


@register("softmax")
def softmax():
    return nn.Softmax(dim=-1)  #! also


CONFIG = {
    "layers": [
        ("dense", 10, 32),
        ("norm", 32),
        ("relu",),
        ("dense", 32, 3),
        ("softmax",),  #- here
    ],
    "criterion": "cross_entropy",
    "lr": 1e-2,
    "epochs": 8,
}
CRITERIA = {"cross_entropy": nn.CrossEntropyLoss, "mse": nn.MSELoss}


def build(cfg):
    model = nn.Sequential(*(REGISTRY[name](*args) for name, *args in cfg["layers"]))
    criterion = CRITERIA[cfg["criterion"]]()  #! also
    return model, criterion


def blobs(n, generator):
    y = torch.randint(0, 3, (n,), generator=generator)
    mean = torch.eye(3, 10)[y] * 3
    return mean + torch.randn(n, 10, generator=generator), y


torch.manual_seed(0)
gen = torch.Generator().manual_seed(1)
model, criterion = build(CONFIG)
opt = torch.optim.Adam(model.parameters(), lr=CONFIG["lr"])
x, y = blobs(240, gen)
losses = []
for epoch in range(CONFIG["epochs"]):
    for xb, yb in zip(x.split(40), y.split(40)):
        loss = criterion(model(xb), yb)  #! here
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
print("final loss", losses[-1])
