# /// case
# title = "Features cached under inference_mode are used for training a probe"
# category = "requires-grad"
# kind = "inference-tensor-in-training"
# severity = "error"
# names = ["extract", "feats", "inference_mode", "cache"]
# difficulty = "medium"
# symptom = "RuntimeError: Inference tensors cannot be saved for backward"
# raises = "RuntimeError"
# raises_message = "Inference tensors cannot be saved for backward"
# cause = "tensors made under inference_mode (and views of them) can not take part in autograd later"
# fix = "compute the cache under no_grad"
# evidence = [{ url = "https://pytorch.org/docs/stable/notes/autograd.html#inference-mode" }, { url = "https://github.com/qubvel-org/segmentation_models.pytorch/pull/1164" }]
# ///
"""Linear probing: features of a frozen encoder are computed once and cached."""
import torch
from torch import nn

torch.manual_seed(2)

encoder = nn.Sequential(nn.Conv1d(2, 8, 5, padding=2), nn.ReLU(), nn.AdaptiveAvgPool1d(4), nn.Flatten())
encoder.eval().requires_grad_(False)


@torch.inference_mode()  #- here
#+ @torch.no_grad()
def extract(signals, chunk=32):  #! also
    return torch.cat([encoder(part) for part in signals.split(chunk)])  #! also


signals = torch.randn(96, 2, 40)
labels = (signals[:, 0].std(dim=1) > signals[:, 1].std(dim=1)).long()
cache = {"train": extract(signals[:64]), "valid": extract(signals[64:])}  #! here

probe = nn.Linear(32, 2)
opt = torch.optim.LBFGS(probe.parameters(), lr=0.5, max_iter=5)

for epoch in range(3):
    for start in range(0, 64, 32):
        feats, target = cache["train"][start:start + 32], labels[start:start + 32]  #! also

        def closure():
            opt.zero_grad()
            loss = nn.functional.cross_entropy(probe(feats), target)  #! also
            loss.backward()
            return loss

        opt.step(closure)

with torch.no_grad():
    acc = (probe(cache["valid"]).argmax(1) == labels[64:]).float().mean()
print(f"probe accuracy {acc:.2f}")
