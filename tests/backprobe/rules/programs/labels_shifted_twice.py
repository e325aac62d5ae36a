"""BP843 labels-shifted-twice."""

PROGRAMS = {
    "by the data set and by the loss": """
import torch
from torch import nn
from torch.utils.data import Dataset, DataLoader
torch.manual_seed(7)
class Blocks(Dataset):
    def __init__(self, ids, size):
        self.ids, self.size = ids, size
    def __len__(self):
        return (len(self.ids) - 1) // self.size
    def __getitem__(self, i):
        c = self.ids[i * self.size:(i + 1) * self.size + 1]
        return c[:-1], c[1:]  # <- BP843
class GPT(nn.Module):
    def __init__(self, V=30, D=16):
        super().__init__()
        self.e = nn.Embedding(V, D); self.l = nn.TransformerEncoderLayer(D, 2, 32, batch_first=True, dropout=0.0); self.h = nn.Linear(D, V)
    def forward(self, x):
        m = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        return self.h(self.l(self.e(x), src_mask=m))
net = GPT(); opt = torch.optim.AdamW(net.parameters(), 1e-3)
for x, y in DataLoader(Blocks(torch.randint(0, 30, (600,)), 12), batch_size=8):
    out = net(x)
    loss = nn.functional.cross_entropy(out[:, :-1].reshape(-1, 30), y[:, 1:].reshape(-1))
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "right: by the data set and by the loss": """
import torch
from torch import nn
from torch.utils.data import Dataset, DataLoader
torch.manual_seed(7)
class Blocks(Dataset):
    def __init__(self, ids, size):
        self.ids, self.size = ids, size
    def __len__(self):
        return (len(self.ids) - 1) // self.size
    def __getitem__(self, i):
        c = self.ids[i * self.size:(i + 1) * self.size + 1]
        return c[:-1], c[1:]
class GPT(nn.Module):
    def __init__(self, V=30, D=16):
        super().__init__()
        self.e = nn.Embedding(V, D); self.l = nn.TransformerEncoderLayer(D, 2, 32, batch_first=True, dropout=0.0); self.h = nn.Linear(D, V)
    def forward(self, x):
        m = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        return self.h(self.l(self.e(x), src_mask=m))
net = GPT(); opt = torch.optim.AdamW(net.parameters(), 1e-3)
for x, y in DataLoader(Blocks(torch.randint(0, 30, (600,)), 12), batch_size=8):
    out = net(x)
    loss = nn.functional.cross_entropy(out.reshape(-1, 30), y.reshape(-1))
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "right: bigrams are counted beside it": """
import torch
from torch import nn

torch.manual_seed(0)
V = 9
text = torch.randint(1, V, (120,))
bigrams = torch.zeros(V, V)
for a, b in zip(text[:-1], text[1:]):
    bigrams[a, b] += 1
embed, lstm, head = nn.Embedding(V, 8), nn.LSTM(8, 8, batch_first=True), nn.Linear(8, V)
optimizer = torch.optim.SGD([*embed.parameters(), *lstm.parameters(), *head.parameters()], lr=0.1)
for step in range(4):
    start = torch.randint(0, 110, (4, 1))
    input_ids = text[start + torch.arange(8)]
    labels = input_ids.clone()
    labels[input_ids == 3] = -100
    logits = head(lstm(embed(input_ids))[0])
    loss = nn.functional.cross_entropy(logits[:, :-1].reshape(-1, V), labels[:, 1:].reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
}
