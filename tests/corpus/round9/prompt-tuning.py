# /// case
# title = "The soft prompt is moved to another dtype after it has been made a Parameter"
# category = "leaf"
# kind = "parameter-made-non-leaf"
# kinds_also_ok = ["non-leaf-parameter", "scaled-parameter-not-registered", "parameter-not-registered"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["prompt", "nn.Parameter"]
# symptom = "the prompt is not among model.parameters() and stays as it was drawn"
# symptom_check = "not model.prompt.is_leaf"
# cause = "to(dtype) of a Parameter gives an ordinary tensor that is no leaf; it is neither registered nor optimized."
# fix = "nn.Parameter(... .to(dtype))"
# ///
import argparse

import torch
import torch.nn as nn


class Backbone(nn.Module):
    def __init__(self, vocab=40, width=16):
        super().__init__()
        self.width = width
        self.embed = nn.Embedding(vocab, width)
        self.attend = nn.MultiheadAttention(width, 2, batch_first=True)
        self.norm = nn.LayerNorm(width)

    def encode(self, x):
        return self.norm(x + self.attend(x, x, x, need_weights=False)[0])


class PromptTuned(nn.Module):
    def __init__(self, backbone, length, classes, dtype):
        super().__init__()
        self.backbone = backbone.requires_grad_(False)
        self.prompt = nn.Parameter(torch.empty(length, backbone.width).uniform_(-0.5, 0.5)).to(dtype)  #- here
#+         self.prompt = nn.Parameter(torch.empty(length, backbone.width).uniform_(-0.5, 0.5).to(dtype))
        self.head = nn.Linear(backbone.width, classes, dtype=dtype)

    def forward(self, ids):
        words = self.backbone.embed(ids)
        prompt = self.prompt.expand(len(ids), -1, -1)  #! also
        return self.head(self.backbone.encode(torch.cat([prompt, words], 1)).mean(1))


def parse(argv):
    parser = argparse.ArgumentParser()
    parser.add_argument("--prompt-length", type=int, default=5)
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--lr", type=float, default=1e-2)
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float64")
    return parser.parse_args(argv)


opts = parse([])
torch.manual_seed(19)
dtype = getattr(torch, opts.dtype)
model = PromptTuned(Backbone().to(dtype), opts.prompt_length, 2, dtype)
optimizer = torch.optim.Adam((p for p in model.parameters() if p.requires_grad), lr=opts.lr)  #! also
for step in range(opts.steps):
    ids = torch.randint(0, 40, (24, 7))
    loss = nn.functional.cross_entropy(model(ids), ((ids < 20).sum(1) > 3).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if (step + 1) % 4 == 0:
        print(step + 1, f"{loss.item():.4f}")
