import math
import torch
from torch import nn

SENTENCES = [
    "we went to the market", "they went to the old market in town", "we saw the river",
    "they saw the old river in town", "the market in town is old", "the river is cold",
]
WORDS = ["<pad>", "<bos>", "<eos>"] + sorted({w for s in SENTENCES for w in s.split()})
INDEX = {w: i for i, w in enumerate(WORDS)}
PAD = INDEX["<pad>"]


def encode(sentences):
    rows = [[INDEX["<bos>"], *(INDEX[w] for w in s.split()), INDEX["<eos>"]] for s in sentences]
    return nn.utils.rnn.pad_sequence([torch.tensor(r) for r in rows], batch_first=True, padding_value=PAD)


class CausalLM(nn.Module):
    def __init__(self, vocab, dim=32, heads=4, max_len=16):
        super().__init__()
        self.dim = dim
        self.embed = nn.Embedding(vocab, dim)
        self.position = nn.Embedding(max_len, dim)
        layer = nn.TransformerEncoderLayer(dim, heads, 64, dropout=0.0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(dim)
        self.lm_head = nn.Linear(dim, vocab, bias=False)
        nn.init.normal_(self.embed.weight, std=dim ** -0.5)
        self.lm_head.weight = self.embed.weight

    def forward(self, ids):
        n = ids.size(1)
        causal = torch.full((n, n), float("-inf")).triu(1)
        x = self.embed(ids) * math.sqrt(self.dim) + self.position(torch.arange(n))
        return self.lm_head(self.norm(self.layers(x, mask=causal, is_causal=True)))


@torch.no_grad()
def complete(model, text):
    model.eval()
    ids = [INDEX["<bos>"]] + [INDEX[w] for w in text.split()]
    while len(ids) < 12 and ids[-1] != INDEX["<eos>"]:
        ids.append(model(torch.tensor([ids]))[0, -1].argmax().item())
    model.train()
    return " ".join(WORDS[i] for i in ids[1:])


torch.manual_seed(20)
torch.set_num_threads(1)
batch = encode(SENTENCES)
inputs, targets = batch[:, :-1], batch[:, 1:]
model = CausalLM(len(WORDS))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
warmup = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1.0, (s + 1) / 20))
criterion = nn.CrossEntropyLoss(ignore_index=PAD)
for step in range(120):
    logits = model(inputs)
    loss = criterion(logits.flatten(0, 1), targets.flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    warmup.step()
    if step % 40 == 0:
        print(step, round(loss.item(), 3), "|", complete(model, "they went"))
print("weights:", sum(p.numel() for p in model.parameters()))
