# /// case
# title = "Masks of the last epoch are fed back by position while the loader shuffles"
# category = "data"
# kind = "pairs-out-of-order"
# kinds_also_ok = ["shared-input-modified"]
# severity = "warning"
# names = ["shuffle", "prev_masks", "return_masks"]
# symptom = "each image is combined with the mask of another"
# symptom_check = "not any(fits)"
# cause = "positions change from epoch to epoch"
# fix = "no shuffling, or look masks up by index"
# evidence = [
#     { url = "https://github.com/nikhilroxtomar/FANet/issues/1", title = "Input output mask does not correspond." },
# ]
# ///
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Polyps(Dataset):
    def __init__(self, n):
        self.centre = torch.randint(2, 6, (n, 2))
        rows, cols = torch.meshgrid(torch.arange(8), torch.arange(8), indexing="ij")
        near = (rows - self.centre[:, :1, None]).abs() + (cols - self.centre[:, 1:, None]).abs()
        self.masks = (near < 3).float().unsqueeze(1)
        self.images = self.masks + 0.4 * torch.randn(n, 1, 8, 8)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return self.images[i], self.masks[i], i


class FANet(nn.Module):
    """Segments with the mask that it predicted in the epoch before."""

    def __init__(self, ch=6):
        super().__init__()
        self.enc, self.dec = nn.Conv2d(1, ch, 3, padding=1), nn.Conv2d(ch, 1, 3, padding=1)

    def forward(self, x, m):
        return self.dec(torch.relu(self.enc(x)) * (1 + m))


def train(model, loader, prev_masks, optimizer):
    return_masks, at, fits = [], 0, []
    for x, y, idx in loader:
        m = prev_masks[at : at + len(x)]  #! here
        fits.append(torch.equal(owners[at : at + len(x)], idx))
        at += len(x)
        logits = model(x, m)  #! also
        loss = nn.functional.binary_cross_entropy_with_logits(logits, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return_masks.append((logits.detach().sigmoid() > 0.5).float())
    return torch.cat(return_masks), fits


torch.manual_seed(141)
data = Polyps(24)
loader = DataLoader(data, batch_size=6, shuffle=True)  #- here
#+ loader = DataLoader(data, batch_size=6, shuffle=False)
model = FANet()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
prev_masks, owners = torch.zeros(24, 1, 8, 8), torch.arange(24)
for epoch in range(3):
    prev_masks, fits = train(model, loader, prev_masks, optimizer)
print(fits)
