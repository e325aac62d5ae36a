# /// case
# title = "Copy of a model that keeps its last features"
# category = "leaf"
# kind = "non-leaf-deepcopied"
# kinds_also_ok = ["graph-retained-in-container"]
# severity = "error"
# names = ["deepcopy", "last_feature", "cache"]
# symptom = "RuntimeError: only tensors created explicitly by the user support deepcopy"
# raises = "RuntimeError"
# raises_message = "Only Tensors created explicitly by the user"
# cause = "a tensor with a graph hangs on the module"
# fix = "keep a detached one"
# evidence = [
#     { url = "https://github.com/ultralytics/yolov5/issues/9623", title = "deepcopy protocol错误，请问有什么建议吗" },
#     { url = "https://github.com/locuslab/deq/issues/23", title = "RuntimeError: Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment" },
# ]
# ///
from copy import deepcopy

import torch
import torch.nn as nn


class AttentionHead(nn.Module):
    def __init__(self, ch):
        super().__init__()
        self.query = nn.Conv2d(ch, ch, 1)
        self.last_feature = None

    def forward(self, x):
        attn = torch.sigmoid(self.query(x))
        self.last_feature = attn  #- here
#+         self.last_feature = attn.detach()
        return x * attn


class Yolo(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, 2)
        self.attn = AttentionHead(8)
        self.detect = nn.Conv2d(8, 5, 1)
        self.stride = 16 // self(torch.zeros(1, 3, 16, 16)).shape[-1]  #! also

    def forward(self, x):
        return self.detect(self.attn(torch.relu(self.stem(x))))


class ModelEMA:
    def __init__(self, model, decay=0.99):
        self.ema = deepcopy(model).eval()  #! here
        self.decay = decay
        for p in self.ema.parameters():
            p.requires_grad_(False)

    def update(self, model):
        with torch.no_grad():
            for e, p in zip(self.ema.state_dict().values(), model.state_dict().values()):
                e.mul_(self.decay).add_(p, alpha=1 - self.decay)


torch.manual_seed(20)
model = Yolo()
ema = ModelEMA(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(3):
    loss = model(torch.rand(2, 3, 16, 16)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    ema.update(model)
print(loss.item())
