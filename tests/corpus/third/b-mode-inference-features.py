# /// case
# title = "Features computed in inference_mode are used in training"
# category = "train-eval-mode"
# kind = "inference-tensor-in-autograd"
# severity = "error"
# names = ["features", "inference_mode"]
# difficulty = "easy"
# symptom = "RuntimeError in the first forward of the probe: inference tensors cannot be saved for backward."
# raises = "RuntimeError"
# raises_message = "Inference tensors cannot be saved for backward"
# cause = "The cached features are inference tensors; the linear layer has to save them for its weight gradient."
# fix = "Use torch.no_grad() for the feature extraction."
# evidence = [{ url = "https://github.com/facebookresearch/dinov2/issues/472" }, { url = "https://github.com/pytorch/pytorch/pull/161164" }]
# ///
import torch
from torch import nn

torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 16)).eval()


@torch.inference_mode()  #- here
#+ @torch.no_grad()
def extract(loader):
    return [(encoder(x), y) for x, y in loader]  #! here


raw = [(x, (x[:, 0] > 0).long()) for x in torch.randn(4, 32, 20)]
cache = extract(raw)  #! here
probe = nn.Linear(16, 2)
opt = torch.optim.SGD(probe.parameters(), lr=0.1)
for epoch in range(3):
    for features, y in cache:
        loss = nn.functional.cross_entropy(probe(features), y)  #! also
        opt.zero_grad()
        loss.backward()  #! also
        opt.step()
print(loss.item())
