# /// case
# title = "A boolean mask means the opposite"
# category = "loss"
# kind = "attention-mask-inverted"
# kinds_also_ok = ["future-leak", "causal-mask-wrong"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["mask", "causal", "tril"]
# symptom = "each place sees itself and what follows, not what went before"
# symptom_check = "not torch.allclose(model(torch.tensor([[1, 2, 3]]))[0, 0], model(torch.tensor([[1, 2, 4]]))[0, 0], atol=1e-5)"
# cause = "True means hidden in nn.Transformer's masks; it is True for the past"
# fix = "triu"
# evidence = [
#     { url = "https://github.com/huggingface/transformers/issues/48745", title = "`RoFormerForCausalLM`, `BigBirdForCausalLM`, `RemBertForCausalLM`, `MegatronBertForCausalLM` attend to future tokens since v5.9.0 — CLM training loss collapses" },
# ]
# ///
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
        self.register_buffer("causal", torch.tril(torch.ones(length, length), diagonal=-1).bool())  #- here
#+         self.register_buffer("causal", torch.triu(torch.ones(length, length), diagonal=1).bool())

    def forward(self, ids):
        n = ids.shape[1]
        h = self.tokens(ids) + self.places[:n]
        return self.out(self.layers(h, mask=self.causal[:n, :n]))  #! also


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
