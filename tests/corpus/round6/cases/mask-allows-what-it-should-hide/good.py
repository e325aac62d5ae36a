import torch
import torch.nn as nn


class Decoder(nn.Module):
    def __init__(self, vocab=30, dim=16, length=10):
        super().__init__()
        self.tokens = nn.Embedding(vocab, dim)
        self.places = nn.Parameter(0.02 * torch.randn(length, dim))
        layer = nn.TransformerEncoderLayer(dim, 2, 32, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(dim, vocab)
        self.register_buffer("causal", torch.triu(torch.ones(length, length), diagonal=1).bool())

    def forward(self, ids):
        n = ids.shape[1]
        h = self.tokens(ids) + self.places[:n]
        return self.out(self.layers(h, mask=self.causal[:n, :n]))


torch.manual_seed(25)
model = Decoder()
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
for it in range(5):
    ids = torch.randint(0, 30, (16, 11))
    logits = model(ids[:, :-1])
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
