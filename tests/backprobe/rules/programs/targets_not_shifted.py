"""BP815 targets-not-shifted."""

PROGRAMS = {
    "lm gru same tokens": """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(20, 16)
        self.rnn = nn.GRU(16, 24, batch_first=True)
        self.out = nn.Linear(24, 20)
    def forward(self, t):
        h, _ = self.rnn(self.emb(t))
        return self.out(h)
net = LM()
opt = torch.optim.Adam(net.parameters(), 1e-2)
for step in range(4):
    tokens = torch.randint(0, 20, (4, 9))
    logits = net(tokens)
    loss = F.cross_entropy(logits.reshape(-1, 20), tokens.reshape(-1))  # <- BP815
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "lm decoder causal with config, labels from dict": """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.qkv, self.proj, self.ln = nn.Linear(d, 3 * d), nn.Linear(d, d), nn.LayerNorm(d)
    def forward(self, x):
        q, k, v = self.qkv(self.ln(x)).chunk(3, -1)
        return x + self.proj(F.scaled_dot_product_attention(q, k, v, is_causal=True))
class Decoder(nn.Module):
    def __init__(self, v, d):
        super().__init__()
        self.tok, self.pos = nn.Embedding(v, d), nn.Embedding(16, d)
        self.blocks = nn.ModuleList(Block(d) for _ in range(2))
        self.head = nn.Linear(d, v)
        self.loss = nn.CrossEntropyLoss()
    def forward(self, input_ids, labels=None):
        x = self.tok(input_ids) + self.pos(torch.arange(input_ids.size(1)))
        for b in self.blocks:
            x = b(x)
        logits = self.head(x)
        return self.loss(logits.flatten(0, 1), labels.flatten())  # <- BP815
model = Decoder(30, 16)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(3):
    ids = torch.randint(0, 30, (2, 8))
    batch = {"input_ids": ids, "labels": ids.clone()}
    optimizer.zero_grad()
    model(**batch).backward()
    optimizer.step()
""",
    "lm with tril mask, transpose for CE": """
import torch
from torch import nn
torch.manual_seed(0)
emb, q, k, v, head = nn.Embedding(11, 8), nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 11)
params = [p for m in (emb, q, k, v, head) for p in m.parameters()]
opt = torch.optim.SGD(params, lr=0.1)
ce = nn.CrossEntropyLoss()
def forward(ids):
    x = emb(ids)
    a = q(x) @ k(x).transpose(1, 2) / 8 ** 0.5
    m = torch.tril(torch.ones(ids.shape[1], ids.shape[1])) == 0
    a = a.masked_fill(m, float("-inf")).softmax(-1)
    return head(x + a @ v(x))
for ids in torch.randint(0, 11, (4, 3, 7)):
    opt.zero_grad()
    y = forward(ids)
    loss = ce(y.transpose(1, 2), ids)  # <- BP815
    loss.backward()
    opt.step()
""",
    "good lm shifted": """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
emb, rnn, out = nn.Embedding(20, 16), nn.LSTM(16, 24, batch_first=True), nn.Linear(24, 20)
opt = torch.optim.Adam([*emb.parameters(), *rnn.parameters(), *out.parameters()], 1e-2)
for step in range(4):
    tokens = torch.randint(0, 20, (4, 9))
    h, _ = rnn(emb(tokens[:, :-1]))
    loss = F.cross_entropy(out(h).reshape(-1, 20), tokens[:, 1:].reshape(-1))
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "good lm shifted logits": """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
emb, rnn, out = nn.Embedding(20, 16), nn.LSTM(16, 24, batch_first=True), nn.Linear(24, 20)
opt = torch.optim.Adam([*emb.parameters(), *rnn.parameters(), *out.parameters()], 1e-2)
for step in range(4):
    tokens = torch.randint(0, 20, (4, 9))
    h, _ = rnn(emb(tokens))
    logits = out(h)
    loss = F.cross_entropy(logits[:, :-1].reshape(-1, 20), tokens[:, 1:].reshape(-1))
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "good sequence autoencoder": """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
emb, enc, dec, out = nn.Embedding(20, 16), nn.GRU(16, 24, batch_first=True), nn.GRU(24, 24, batch_first=True), nn.Linear(24, 20)
opt = torch.optim.Adam([p for m in (emb, enc, dec, out) for p in m.parameters()], 1e-2)
for step in range(4):
    tokens = torch.randint(0, 20, (4, 9))
    _, h = enc(emb(tokens))
    y, _ = dec(h[-1].unsqueeze(1).expand(-1, 9, -1).contiguous())
    loss = F.cross_entropy(out(y).reshape(-1, 20), tokens.reshape(-1))
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "good masked lm": """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
emb, enc, out = nn.Embedding(21, 16), nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True), nn.Linear(16, 20)
opt = torch.optim.Adam([p for m in (emb, enc, out) for p in m.parameters()], 1e-2)
for step in range(4):
    tokens = torch.randint(0, 20, (4, 9))
    hide = torch.rand(4, 9) < 0.3
    y = out(enc(emb(tokens.masked_fill(hide, 20))))
    loss = F.cross_entropy(y[hide], tokens[hide])
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "good mask without the own place": """
import torch
from torch import nn
torch.manual_seed(0)
emb, q, k, v, head = nn.Embedding(11, 8), nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 11)
params = [p for m in (emb, q, k, v, head) for p in m.parameters()]
opt = torch.optim.SGD(params, lr=0.1)
for ids in torch.randint(0, 11, (4, 3, 7)):
    x = emb(ids)
    a = q(x) @ k(x).transpose(1, 2) / 8**0.5
    seen = torch.ones(7, 7, dtype=torch.bool).tril(-1)
    a = a.masked_fill(~seen, -1e9).softmax(-1)
    loss = nn.functional.cross_entropy(head(a @ v(x)).flatten(0, 1), ids.flatten())
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "good shift of the vectors behind a start": """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.drop, self.rnn = nn.Embedding(20, 16), nn.Dropout(0.1), nn.LSTM(16, 24, batch_first=True)
        self.out, self.sos = nn.Linear(24, 20), nn.Parameter(torch.zeros(1, 1, 16))
    def forward(self, tokens):
        h = self.drop(self.emb(tokens)) * 4.0
        h = torch.cat([self.sos.expand(len(h), -1, -1), h[:, :-1]], 1)
        return self.out(self.rnn(h)[0])
net = LM()
opt = torch.optim.Adam(net.parameters(), 1e-2)
for step in range(4):
    tokens = torch.randint(0, 20, (4, 9))
    loss = F.cross_entropy(net(tokens).reshape(-1, 20), tokens.reshape(-1))
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "good shift of the vectors by padding": """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
emb, out = nn.Embedding(20, 16), nn.Linear(16, 20)
opt = torch.optim.Adam([*emb.parameters(), *out.parameters()], 1e-2)
for step in range(4):
    tokens = torch.randint(0, 20, (4, 9))
    x = F.pad(emb(tokens), (0, 0, 1, -1))
    y = F.scaled_dot_product_attention(x, x, x, is_causal=True)
    loss = F.cross_entropy(out(y).reshape(-1, 20), tokens.reshape(-1))
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "good sequence autoencoder with one recurrent layer": """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
emb, enc, out = nn.Embedding(20, 16), nn.LSTM(16, 24, batch_first=True), nn.Linear(24, 9 * 20)
opt = torch.optim.Adam([p for m in (emb, enc, out) for p in m.parameters()], 1e-2)
for step in range(4):
    tokens = torch.randint(0, 20, (4, 9))
    _, (h, _) = enc(emb(tokens))
    loss = F.cross_entropy(out(h[-1]).reshape(-1, 20), tokens.reshape(-1))
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "good sequence autoencoder from the last place": """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
emb, enc, out = nn.Embedding(20, 16), nn.GRU(16, 24, batch_first=True), nn.Linear(24, 9 * 20)
opt = torch.optim.Adam([p for m in (emb, enc, out) for p in m.parameters()], 1e-2)
for step in range(4):
    tokens = torch.randint(0, 20, (4, 9))
    h, last = enc(emb(tokens))
    loss = F.cross_entropy(out(h[:, -1]).reshape(-1, 20), tokens.reshape(-1))
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "what a recurrent layer gives is taken from its tuple later": """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
emb, rnn, out = nn.Embedding(20, 16), nn.LSTM(16, 24), nn.Linear(24, 20)
opt = torch.optim.Adam([p for m in (emb, rnn, out) for p in m.parameters()], 1e-2)
for step in range(4):
    tokens = torch.randint(0, 20, (4, 9))
    given = rnn(emb(tokens).transpose(0, 1))
    logits = out(given[0].transpose(0, 1))
    loss = F.cross_entropy(logits.reshape(-1, 20), tokens.reshape(-1))  # <- BP815
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
}

_TUNED = """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)


def collated(tokens):
    {labels}
    return {{"tokens": tokens, "labels": labels}}


emb, rnn, out = nn.Embedding(20, 16), nn.GRU(16, 24, batch_first=True), nn.Linear(24, 20)
opt = torch.optim.Adam([p for m in (emb, rnn, out) for p in m.parameters()], 1e-2)
for step in range(4):
    batch = collated(torch.randint(0, 20, (4, 9)))
    labels = batch.pop("labels")
    logits = out(rnn(emb(**{{"input": batch["tokens"]}}))[0])
    loss = F.cross_entropy({loss}
    opt.zero_grad()
    loss.backward()
    opt.step()
"""

PROGRAMS |= {
    "padding and prompt are ignored": _TUNED.format(
        labels="labels = tokens.masked_fill(tokens < 3, -100)\n    labels[:, :2] = -100",
        loss="logits.flatten(0, 1), labels.flatten())  # <- BP815",
    ),
    "padding is ignored by where": _TUNED.format(
        labels="labels = torch.where(tokens < 3, torch.full_like(tokens, 0), tokens)",
        loss="logits.flatten(0, 1), labels.flatten(), ignore_index=0)  # <- BP815",
    ),
    "what is filled in is a class that is learned": _TUNED.format(
        labels="labels = tokens.masked_fill(tokens < 9, 9)",
        loss="logits.flatten(0, 1), labels.flatten())",
    ),
    "padding and prompt are ignored, and the places are shifted": _TUNED.format(
        labels="labels = tokens.masked_fill(tokens < 3, -100)\n    labels[:, :2] = -100",
        loss="logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())",
    ),
}
