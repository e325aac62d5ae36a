# /// case
# title = "Inputs and labels are shuffled separately"
# category = "data"
# kind = "misaligned-labels"
# kinds_also_ok = ["separate-shuffling"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["shuffle", "DataLoader", "labels"]
# symptom = "labels belong to other inputs"
# symptom_check = "aligned < 0.9"
# cause = "two loaders shuffle each for itself"
# fix = "one dataset of pairs"
# evidence = [
#     { url = "https://github.com/mlcommons/GaNDLF/pull/870", title = "Made train batches order same as gt" },
# ]
# ///
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(88)


def get_train_loader(images, masks, batch_size):
    image_loader = DataLoader(images, batch_size=batch_size, shuffle=True)  #- here
    mask_loader = DataLoader(masks, batch_size=batch_size, shuffle=True)  #- here
    return lambda: zip(image_loader, mask_loader)  #- also
#+     pair_loader = DataLoader(TensorDataset(images, masks), batch_size=batch_size, shuffle=True)
#+     return lambda: iter(pair_loader)


class SegModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 1, 1))

    def forward(self, x):
        return self.net(x).squeeze(1)


def train_network(model, batches, optimizer, params):
    total, agree, n = 0.0, 0, 0
    for image, label in batches():
        output = model(image)
        loss = nn.functional.binary_cross_entropy_with_logits(output, label)
        optimizer.zero_grad()
        loss.backward()
        if params["clip_grad"]:
            nn.utils.clip_grad_norm_(model.parameters(), params["clip_grad"])
        optimizer.step()
        total += loss.item()
        agree += ((image.squeeze(1) > 0.5).float() == label).float().mean((1, 2)).sum().item()
        n += len(image)
    return total / n, agree / n


images = torch.rand(48, 1, 8, 8)
masks = (images.squeeze(1) > 0.5).float()
batches = get_train_loader(images, masks, batch_size=8)
model = SegModel()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(3):
    loss, aligned = train_network(model, batches, optimizer, {"clip_grad": 1.0})
    print(epoch, loss, aligned)
