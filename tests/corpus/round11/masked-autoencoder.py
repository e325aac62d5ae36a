# /// case
# title = "The meter sums up loss tensors with their graphs"
# category = "retention"
# kind = "loss-accumulated-with-graph"
# kinds_also_ok = ["running-loss-keeps-graph", "missing-item", "graph-kept-for-logging", "memory-growth"]
# severity = "warning"
# names = ["losses", "loss", "update"]
# symptom = "the meter keeps the graphs of all batches and memory grows"
# symptom_check = "losses.avg.requires_grad if isinstance(losses.avg, torch.Tensor) else False"
# cause = "the loss is given to the meter with its graph instead of as a number."
# fix = "loss.item()"
# ///
import time
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class AverageMeter(object):
    """Computes and stores the average and current value"""

    def __init__(self, name, fmt=":f"):
        self.name = name
        self.fmt = fmt
        self.reset()

    def reset(self):
        self.val = 0
        self.avg = 0
        self.sum = 0
        self.count = 0

    def update(self, val, n=1):
        self.val = val  #! also
        self.sum += val * n  #! also
        self.count += n
        self.avg = self.sum / self.count  #! also

    def __str__(self):
        return ("{name} {val" + self.fmt + "} ({avg" + self.fmt + "})").format(**self.__dict__)


class WaveDataset(Dataset):
    def __init__(self, n, length=32):
        t = torch.linspace(0, 6.28, length)
        freq, phase = torch.rand(n, 1) * 2 + 1, torch.rand(n, 1) * 6.28
        self.waves = torch.sin(freq * t + phase)

    def __len__(self):
        return len(self.waves)

    def __getitem__(self, i):
        wave = self.waves[i]
        visible = (torch.rand_like(wave) > 0.25).float()
        return wave * visible, wave


class AutoEncoder(nn.Module):
    def __init__(self, length=32, code=6):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(length, 24), nn.ELU(), nn.Linear(24, code))
        self.decoder = nn.Sequential(nn.Linear(code, 24), nn.ELU(), nn.Linear(24, length))

    def forward(self, x):
        return self.decoder(self.encoder(x))


def train(loader, model, criterion, optimizer, epoch, meters):
    losses, batch_time = meters
    losses.reset()
    batch_time.reset()
    model.train()
    end = time.perf_counter()
    for masked, wave in loader:
        output = model(masked)
        loss = criterion(output, wave)
        losses.update(loss, wave.size(0))  #- here
#+         losses.update(loss.item(), wave.size(0))

        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

        batch_time.update(time.perf_counter() - end)
        end = time.perf_counter()
    print("Epoch: [%d]" % epoch, losses)


torch.manual_seed(2)
torch.set_num_threads(1)
loader = DataLoader(WaveDataset(320), batch_size=32, shuffle=True)
model = AutoEncoder()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
losses = AverageMeter("Loss", ":.4f")
batch_time = AverageMeter("Time", ":6.3f")
curve = []
for epoch in range(8):
    train(loader, model, nn.MSELoss(), optimizer, epoch, (losses, batch_time))
    curve.append(losses.avg)  #! also
