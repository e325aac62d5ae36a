# /// case
# title = "The distributed sampler is never told the epoch"
# category = "distributed"
# kind = "sampler-epoch-not-set"
# kinds_also_ok = ["no-reshuffling"]
# severity = "warning"
# names = ["DistributedSampler", "set_epoch"]
# symptom = "all epochs have the same order"
# symptom_check = "orders[0] == orders[1] == orders[2]"
# cause = "set_epoch is not called"
# fix = "call it before each epoch"
# evidence = [
#     { url = "https://github.com/lucidrains/DALLE-pytorch/pull/230", title = "use data_sampler.set_epoch to avoid having the same order in each epoch" },
#     { url = "https://github.com/kan-bayashi/ParallelWaveGAN/issues/177", title = "set_epoch on DataLoader is needed for distributed training" },
# ]
# ///
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class TextImageDataset(Dataset):
    def __init__(self, n=40):
        g = torch.Generator().manual_seed(1)
        self.text = torch.randint(0, 50, (n, 6), generator=g)
        self.codes = torch.randint(0, 16, (n, 4), generator=g)

    def __len__(self):
        return len(self.text)

    def __getitem__(self, i):
        return i, self.text[i], self.codes[i]


class DALLE(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.text_emb, self.image_emb = nn.Embedding(50, dim), nn.Embedding(16, dim)
        self.rnn, self.to_logits = nn.GRU(dim, dim, batch_first=True), nn.Linear(dim, 16)

    def forward(self, text, codes):
        seq = torch.cat([self.text_emb(text), self.image_emb(codes[:, :-1])], 1)
        h = self.rnn(seq)[0][:, text.shape[1] - 1:]
        return nn.functional.cross_entropy(self.to_logits(h).flatten(0, 1), codes.flatten())


torch.manual_seed(30)
dataset = TextImageDataset()
data_sampler = DistributedSampler(dataset, num_replicas=2, rank=0, shuffle=True, seed=0)  #! also
loader = DataLoader(dataset, batch_size=5, sampler=data_sampler, drop_last=True)
dalle = DALLE()
optimizer = torch.optim.Adam(dalle.parameters(), lr=3e-3)
orders = []
for epoch in range(3):  #! here
    order = []
#+     data_sampler.set_epoch(epoch)
    for index, text, codes in loader:  #! also
        loss = dalle(text, codes)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(dalle.parameters(), 0.5)
        optimizer.step()
        order += index.tolist()
    orders.append(order)
    print(epoch, loss.item())
