# /// case
# title = "Gradients are cleared in every micro-batch of an accumulation"
# category = "accumulation"
# kind = "zero-grad-cancels-accumulation"
# kinds_also_ok = ["gradients-cleared-too-often"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["zero_grad", "grad_accum_steps"]
# symptom = "an update sees only the last micro-batch"
# symptom_check = "not torch.allclose(at_step[0], reference, atol=1e-6)"
# cause = "zero_grad in the inner loop"
# fix = "clear only after a step"
# evidence = [
#     { url = "https://github.com/bytetriper/RAE/issues/67", title = "train.py: zero_grad is called per microbatch, breaking gradient accumulation" },
#     { url = "https://github.com/gaozhihan/PreDiff/issues/32", title = "Timing to call .zero_grad()" },
# ]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F
from types import SimpleNamespace

args = SimpleNamespace(global_batch_size=24, micro_batch_size=6, steps=4, lr=2e-3, clip_grad=1.0)
grad_accum_steps = args.global_batch_size // args.micro_batch_size
torch.manual_seed(101)


class Denoiser(nn.Module):
    def __init__(self, dim=12):
        super().__init__()
        self.t_embed = nn.Linear(1, dim)
        self.net = nn.Sequential(nn.Linear(dim, 48), nn.SiLU(), nn.Linear(48, dim))

    def forward(self, x, t):
        return self.net(x + self.t_embed(t))


def flow_loss(model, latents, noise, t):
    x_t = (1 - t) * latents + t * noise
    return F.mse_loss(model(x_t, t), noise - latents)


model = Denoiser()
optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.0)
at_step, reference = [], None
for train_steps in range(args.steps):
    latents, noise = torch.randn(args.global_batch_size, 12), torch.randn(args.global_batch_size, 12)
    t = torch.rand(args.global_batch_size, 1)
    if reference is None:
        reference = torch.autograd.grad(flow_loss(model, latents, noise, t), model.t_embed.weight)[0]
    running = 0.0
#+     optimizer.zero_grad(set_to_none=True)
    for micro in range(grad_accum_steps):
        sl = slice(micro * args.micro_batch_size, (micro + 1) * args.micro_batch_size)
        optimizer.zero_grad(set_to_none=True)  #- here
        loss = flow_loss(model, latents[sl], noise[sl], t[sl]) / grad_accum_steps
        loss.backward()  #! also
        running += loss.item()
    at_step.append(model.t_embed.weight.grad.clone())
    nn.utils.clip_grad_norm_(model.parameters(), args.clip_grad)
    optimizer.step()
    print(train_steps, running)
