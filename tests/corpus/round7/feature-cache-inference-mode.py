# /// case
# title = "Features cached under inference_mode are used for training"
# category = "graph-break"
# kind = "inference-tensor-in-autograd"
# kinds_also_ok = ["inference-mode-tensor"]
# severity = "error"
# names = ["inference_mode", "extract", "cache"]
# symptom = "the first training forward raises"
# raises = "RuntimeError"
# raises_message = "Inference tensors cannot be saved for backward"
# cause = "inference tensors may not take part in autograd"
# fix = "no_grad"
# evidence = [
#     { url = "https://github.com/facebookresearch/dinov2/issues/399", title = "Features cached under inference_mode are used for training" },
# ]
# ///
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


@torch.inference_mode()  #- here
#+ @torch.no_grad()
def extract(backbone, loader):
    backbone.eval()
    feats, labels = [], []
    for images, y in loader:
        feats.append(backbone(images).flatten(1))
        labels.append(y)
    return torch.cat(feats), torch.cat(labels)


def linear_probe(features, labels, epochs=3, lr=0.05):
    probe = nn.Linear(features.shape[1], int(labels.max()) + 1)
    optimizer = torch.optim.SGD(probe.parameters(), lr=lr)
    for _ in range(epochs):
        for x, y in zip(features.split(16), labels.split(16)):
            logits = probe(x)  #! also
            loss = nn.functional.cross_entropy(logits, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return probe, loss.item()


torch.manual_seed(8)
backbone = nn.Sequential(nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.AdaptiveAvgPool2d(2))
dataset = TensorDataset(torch.rand(48, 3, 10, 10), torch.randint(0, 3, (48,)))
features, labels = extract(backbone, DataLoader(dataset, batch_size=12))  #! also
probe, final = linear_probe(features, labels)
print("probe loss", final)
