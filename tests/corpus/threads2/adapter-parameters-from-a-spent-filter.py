# /// case
# title = "Clipping gets a filter object that the optimizer has used up"
# category = "optimizer"
# kind = "clip-without-effect"
# kinds_also_ok = ["clip-without-gradient"]
# severity = "warning"
# names = ["lora_layers", "filter", "clip_grad_norm_"]
# symptom = "clip_grad_norm_ returns 0 and clips nothing"
# symptom_check = "not any(norms)"
# cause = "a filter can be walked once; the optimizer did"
# fix = "make a list of it"
# evidence = [
#     { url = "https://github.com/PixArt-alpha/PixArt-alpha/pull/160", title = "fix iterator for params_to_clip" },
#     { url = "https://github.com/pytorch/pytorch/pull/151529", title = "Add hint message when parameters is empty in clip_grad_norm_" },
# ]
# ///
import argparse

import torch
import torch.nn as nn


class Block(nn.Module):
    def __init__(self, dim, rank):
        super().__init__()
        self.attn = nn.Linear(dim, dim)
        self.lora_down = nn.Linear(dim, rank, bias=False)
        self.lora_up = nn.Linear(rank, dim, bias=False)
        nn.init.zeros_(self.lora_up.weight)

    def forward(self, x):
        return x + torch.tanh(self.attn(x) + self.lora_up(self.lora_down(x)))


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rank", type=int, default=2)
    parser.add_argument("--max_grad_norm", type=float, default=0.01)
    parser.add_argument("--learning_rate", type=float, default=1e-2)
    return parser.parse_args([])


args = parse_args()
torch.manual_seed(48)
transformer = nn.Sequential(Block(8, args.rank), Block(8, args.rank), nn.Linear(8, 8))
transformer.requires_grad_(False)
for name, param in transformer.named_parameters():
    param.requires_grad = "lora" in name

lora_layers = filter(lambda p: p.requires_grad, transformer.parameters())  #- here
#+ lora_layers = list(filter(lambda p: p.requires_grad, transformer.parameters()))
optimizer = torch.optim.AdamW(lora_layers, lr=args.learning_rate)
norms = []
for step in range(5):
    latents, noise = torch.randn(16, 8), torch.randn(16, 8)
    t = torch.rand(16, 1)
    pred = transformer((1 - t) * latents + t * noise)
    loss = 50 * nn.functional.mse_loss(pred, noise)
    loss.backward()
    params_to_clip = lora_layers
    norms.append(float(nn.utils.clip_grad_norm_(params_to_clip, args.max_grad_norm)))  #! here
    optimizer.step()
    optimizer.zero_grad()
print(norms)
