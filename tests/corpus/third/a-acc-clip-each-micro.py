# /// case
# title = "Accumulated gradient is clipped after every micro-batch"
# category = "accumulation"
# kind = "clip-per-micro-batch"
# kinds_also_ok = ["clip-without-effect", "clip-before-backward"]
# severity = "warning"
# names = ["clip_grad_norm_", "max_norm", "gather"]
# difficulty = "hard"
# symptom = "later micro-batches weigh more than earlier ones; the direction of the update is wrong"
# symptom_check = "(lambda a, b: float(torch.nn.functional.cosine_similarity(a, b, dim=0)) < 0.999)((model.zero_grad(), gather(probe), torch.cat([p.grad.flatten() for p in model.parameters()]).clone())[2], (model.zero_grad(), [mse(x, y).backward() for x, y in probe], torch.cat([p.grad.flatten() for p in model.parameters()]).clone())[2])"
# cause = "clip_grad_norm_ stands inside the micro-batch loop and rescales the partial sum each time"
# fix = "clip once, after the last backward"
# evidence = [{ url = "https://github.com/m2lines/Samudra/pull/476" }, { url = "https://github.com/mflux-community/mflux/pull/447" }]
# ///
import torch
import torch.nn as nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(5, 40), nn.ReLU(), nn.Linear(40, 2))
opt = torch.optim.SGD(model.parameters(), lr=0.3)
max_norm, micro_batches = 0.5, 4


def mse(x, y):
    return (model(x) - y).pow(2).mean()


def gather(parts):
    total = 0.0
    for x, y in parts:
        loss = mse(x, y) / len(parts)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm)  #- here
        total += loss.item()  #! also
#+     nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    return total  #! also


def draw(n=16):
    x = torch.randn(n, 5) * 2
    return x, torch.stack([x[:, 0] * x[:, 1], x[:, 2].abs()], dim=1)


for step in range(30):
    opt.zero_grad()
    loss = gather([draw() for _ in range(micro_batches)])
    opt.step()

probe = [draw() for _ in range(micro_batches)]
print(loss)
