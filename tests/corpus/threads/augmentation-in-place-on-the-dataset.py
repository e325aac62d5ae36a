# /// case
# title = "In-place noise accumulates in the data set over the epochs"
# category = "uncovered"
# kind = "shared-input-modified"
# severity = "warning"
# names = ["images", "add_"]
# symptom = "the stored images drift from the originals"
# symptom_check = "not torch.equal(dataset.images, original)"
# cause = "the sample is a view of the stored tensor"
# fix = "out of place"
# evidence = [
#     { url = "https://github.com/tflearn/tflearn/issues/854", title = "Data augmentation modifies the original input data(?)" },
# ]
# ///
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Noisy(Dataset):
    def __init__(self, images, labels):
        self.images, self.labels = images, labels

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        image = self.images[i]  #! also
        image.add_(0.3 * torch.randn_like(image)).clamp_(0, 1)  #- here
#+         image = (image + 0.3 * torch.randn_like(image)).clamp(0, 1)
        return image, self.labels[i]


torch.manual_seed(0)
original = torch.rand(24, 1, 6, 6)
dataset = Noisy(original.clone(), torch.randint(0, 2, (24,)))
net = nn.Sequential(nn.Flatten(), nn.Linear(36, 2))
opt = torch.optim.Adam(net.parameters())
for epoch in range(3):
    for x, y in DataLoader(dataset, batch_size=8, shuffle=True):
        opt.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        opt.step()
print((dataset.images - original).abs().mean())
