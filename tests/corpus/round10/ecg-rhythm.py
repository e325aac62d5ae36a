# /// case
# title = "The cosine schedule is laid out in epochs and stepped at each batch"
# category = "optimizer"
# kind = "scheduler-stepped-per-batch"
# kinds_also_ok = ["scheduler-step-wrong-place", "scheduler-period-mismatch", "t-max-in-epochs-stepped-per-batch"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["schedule", "T_max", "EPOCHS"]
# symptom = "the learning rate swings up and down within the epochs and does not end at its minimum"
# symptom_check = "any(b > a + 1e-9 for a, b in zip(rates, rates[1:]))"
# cause = "T_max counts epochs but step is called once per batch, so the cosine passes its end and rises again."
# fix = "step once per epoch"
# ///
import torch
import torch.nn.functional as F
from torch import nn

EPOCHS = 6
BATCH = 32
LENGTH = 64


def beats(n):
    rhythm = torch.randint(0, 3, (n,))
    t = torch.linspace(0, 1, LENGTH)
    freq = (3 + 2 * rhythm)[:, None].float()
    wave = torch.sin(6.2832 * freq * t + 6.2832 * torch.rand(n, 1)).pow(5)
    return (wave + 0.3 * torch.randn(n, LENGTH)).unsqueeze(1), rhythm


def build():
    return nn.Sequential(
        nn.Conv1d(1, 12, 7, stride=2, padding=3), nn.BatchNorm1d(12), nn.ReLU(),
        nn.Conv1d(12, 24, 5, stride=2, padding=2), nn.BatchNorm1d(24), nn.ReLU(),
        nn.AdaptiveMaxPool1d(2), nn.Flatten(), nn.Linear(48, 3),
    )


def epoch_batches(signals, rhythm):
    for rows in torch.randperm(len(signals)).split(BATCH):
        yield signals[rows], rhythm[rows]


def main():
    signals, rhythm = beats(256)
    net = build()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS, eta_min=1e-5)  #! also
    losses, rates = [], []
    for epoch in range(EPOCHS):
        net.train()
        for x, y in epoch_batches(signals, rhythm):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                logits = net(x)
            loss = F.cross_entropy(logits.float(), y, label_smoothing=0.05)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            rates.append(optimizer.param_groups[0]["lr"])
            schedule.step()  #- here
#+         schedule.step()
        print(f"{epoch} loss {losses[-1]:.3f} lr {rates[-1]:.5f}")
    return net, losses, rates


torch.manual_seed(6)
net, losses, rates = main()
