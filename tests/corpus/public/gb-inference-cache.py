# /// case
# title = "Features cached under inference_mode are used for training"
# category = "graph-break"
# kind = "inference-tensor-in-graph"
# severity = "error"
# names = ["cached"]
# difficulty = "medium"
# symptom = "RuntimeError: Inference tensors cannot be saved for backward"
# raises = "RuntimeError"
# raises_message = "Inference tensors cannot be saved for backward"
# cause = "inference tensors cannot take part in autograd"
# fix = "torch.no_grad() for the cache, or clone() outside"
# evidence = [
#     { url = "https://github.com/unslothai/unsloth/issues/2434" },
#     { url = "https://github.com/facebookresearch/dinov2/issues/472" },
#     { url = "https://github.com/snowflakedb/ArcticTraining/pull/265" },
# ]
# ///
import torch
import torch.nn as nn

torch.manual_seed(3)
extractor = nn.Sequential(nn.Linear(20, 8), nn.ReLU()).eval().requires_grad_(False)
raw = torch.randn(64, 20)
with torch.inference_mode():  #- here
#+ with torch.no_grad():
    cached = extractor(raw)

probe = nn.Linear(8, 2)
opt = torch.optim.SGD(probe.parameters(), lr=0.5)
classes = torch.randint(0, 2, (64,))
for _ in range(10):
    opt.zero_grad()
    out = probe(cached)  #! also
    loss = nn.functional.cross_entropy(out, classes)
    loss.backward()
    opt.step()
print(loss.item())
