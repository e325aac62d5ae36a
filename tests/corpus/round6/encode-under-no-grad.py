# /// case
# title = "The method that training uses too is under no_grad"
# category = "flags"
# kind = "no-grad-in-forward"
# kinds_also_ok = ["parameter-without-gradient", "graph-break-no-grad"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["no_grad", "encode"]
# symptom = "only the scale has a gradient"
# symptom_check = "model.words.weight.grad is None and model.project.weight.grad is None"
# cause = "encode, which forward calls, is under no_grad"
# fix = "decorate search only"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class Retriever(nn.Module):
    def __init__(self, vocab=50, dim=16):
        super().__init__()
        self.words = nn.EmbeddingBag(vocab, dim)
        self.project = nn.Linear(dim, dim)
        self.log_scale = nn.Parameter(torch.tensor(2.0))

    @torch.no_grad()  #- here
    def encode(self, ids):  #! also
        return F.normalize(self.project(self.words(ids)), dim=-1)

    def forward(self, query, document):
        q, d = self.encode(query), self.encode(document)  #! also
        return self.log_scale.exp() * q @ d.T

#+     @torch.no_grad()
    def search(self, query, corpus, k=3):
        return (self.encode(query) @ corpus.T).topk(k, dim=1).indices


torch.manual_seed(18)
model = Retriever()
opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
documents = torch.randint(0, 50, (32, 12))
queries = documents[:, :4]
labels = torch.arange(32)
for step in range(10):
    scores = model(queries, documents)
    loss = (F.cross_entropy(scores, labels) + F.cross_entropy(scores.T, labels)) / 2
    opt.zero_grad()
    loss.backward()
    opt.step()
with torch.no_grad():
    found = model.search(queries, model.encode(documents))
print(loss.item(), (found[:, 0] == labels).float().mean().item())
