# /// case
# title = "Masking writes zeros into the table itself and into the target"
# category = "in-place"
# kind = "augmentation-modifies-data-in-place"
# kinds_also_ok = ["in-place-on-input", "aliased-data", "target-overwritten"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["rows", "mask", "values"]
# symptom = "the table fills with zeros, and the targets at masked places are always 0"
# symptom_check = "(table.values == 0).float().mean().item() > 0.5"
# cause = "rows is a view of the table, and the target of the loss is the same tensor."
# fix = "rows = rows.masked_fill(mask, 0.0)"
# ///
import torch
from torch import nn
import torch.nn.functional as F


class FeatureMasking:
    def __init__(self, rate, generator):
        self.rate = rate
        self.generator = generator

    def __call__(self, rows):
        mask = torch.rand(rows.shape, generator=self.generator) < self.rate
        rows[mask] = 0.0  #- here
#+         rows = rows.masked_fill(mask, 0.0)
        return rows, mask


class Table:
    """Standardised columns, served in blocks; the blocks come in a new order every epoch."""

    def __init__(self, values, block):
        self.values = (values - values.mean(0)) / values.std(0)
        self.block = block

    def __iter__(self):
        blocks = self.values.split(self.block)
        for index in torch.randperm(len(blocks)).tolist():
            yield blocks[index]  #! also


class Imputer(nn.Module):
    def __init__(self, columns, hidden=48):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(2 * columns, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.decoder = nn.Linear(hidden, columns)

    def forward(self, rows, mask):
        return self.decoder(self.encoder(torch.cat([rows, mask.float()], dim=1)))


def correlated(count, columns, factors=3):
    loadings = torch.randn(factors, columns)
    return torch.randn(count, factors) @ loadings + 0.3 * torch.randn(count, columns)


def reconstruction(model, masking, rows):
    corrupted, mask = masking(rows)  #! also
    restored = model(corrupted, mask)
    return F.mse_loss(restored[mask], rows[mask])  #! also


def pretrain(model, table, masking, epochs, lr):
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)
    for epoch in range(epochs):
        values = []
        for rows in table:
            loss = reconstruction(model, masking, rows)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            values.append(loss.detach())
        scheduler.step()
        yield epoch, torch.stack(values).mean().item()


torch.manual_seed(19)
table = Table(correlated(1024, 12), block=64)
model = Imputer(columns=12)
masking = FeatureMasking(rate=0.25, generator=torch.Generator().manual_seed(7))
for epoch, value in pretrain(model, table, masking, epochs=10, lr=3e-3):
    print(f"epoch {epoch} masked mse {value:.4f}")

labels = (table.values[:, 0] + table.values[:, 1] > 0).float()
with torch.no_grad():
    codes = model.encoder(torch.cat([table.values, torch.zeros_like(table.values)], dim=1))
probe = nn.Linear(codes.shape[1], 1)
optimizer = torch.optim.Adam(probe.parameters(), lr=1e-2)
for _ in range(60):
    loss = F.binary_cross_entropy_with_logits(probe(codes).squeeze(1), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"probe {loss.item():.4f}")
