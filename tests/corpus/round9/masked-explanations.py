# /// case
# title = "A penalty on the input gradients is computed without create_graph"
# category = "higher-order"
# kind = "create-graph-missing"
# kinds_also_ok = ["gradient-penalty-without-create-graph", "retain-graph-instead-of-create-graph", "gradient-penalty-constant"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["saliency", "torch.autograd.grad", "reason"]
# symptom = "the explanation penalty has no gradient and the model keeps to the shortcut"
# symptom_check = "not reason.requires_grad"
# cause = "Without create_graph the gradients are constants; retain_graph only keeps the first graph."
# fix = "create_graph=True"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


def make_data(count, generator):
    y = torch.randint(0, 2, (count,), generator=generator)
    x = torch.randn(count, 8, generator=generator)
    x[:, 0] += 1.5 * (y * 2 - 1)
    x[:, 7] += 3.0 * (y * 2 - 1)
    return x, y


class RightReasons:
    def __init__(self, irrelevant, strength):
        self.irrelevant, self.strength = irrelevant, strength

    def __call__(self, model, x, y):
        x = x.detach().requires_grad_(True)
        log_probs = model(x).log_softmax(-1)
        saliency, = torch.autograd.grad(log_probs.sum(), x, retain_graph=True)  #- here
#+         saliency, = torch.autograd.grad(log_probs.sum(), x, create_graph=True)
        answer = F.nll_loss(log_probs, y)
        reason = (saliency * self.irrelevant).square().sum(1).mean()  #! also
        return answer, self.strength * reason  #! also


def evaluate(model, generator):
    x, y = make_data(256, generator)
    x[:, 7] = torch.randn(256, generator=generator)
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


generator = torch.Generator().manual_seed(5)
torch.manual_seed(5)
irrelevant = torch.zeros(8)
irrelevant[7] = 1.0
model = nn.Sequential(nn.Linear(8, 32), nn.Softplus(), nn.Linear(32, 2))
criterion = RightReasons(irrelevant, strength=2.0)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=30)
for step in range(30):
    x, y = make_data(64, generator)
    answer, reason = criterion(model, x, y)
    optimizer.zero_grad()
    (answer + reason).backward()  #! also
    optimizer.step()
    scheduler.step()
accuracy = evaluate(model, generator)
print(f"answer {answer.item():.3f} reason {reason.item():.3f} accuracy without the shortcut {accuracy:.2f}")
