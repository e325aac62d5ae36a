# /// case
# title = "The encoder is unfrozen by setting requires_grad of the module"
# category = "flags"
# kind = "requires-grad-set-on-module"
# kinds_also_ok = ["unfreeze-without-effect", "frozen-parameter"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["requires_grad", "encoder", "requires_grad_"]
# symptom = "the encoder's parameters stay frozen"
# symptom_check = "not any(p.requires_grad for p in model.encoder.parameters())"
# cause = "Assigning requires_grad to a module makes a plain attribute and leaves its parameters as they are."
# fix = "requires_grad_(True)"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class SentimentModel(nn.Module):
    def __init__(self, vocab=60, width=16):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        layer = nn.TransformerEncoderLayer(width, 2, 32, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(width, 2)

    def forward(self, tokens):
        return self.head(self.encoder(self.embed(tokens)).mean(1))


class GradualUnfreezing:
    def __init__(self, model, at):
        self.model, self.at = model, at
        for part in (model.embed, model.encoder):
            for p in part.parameters():
                p.requires_grad = False

    def __call__(self, epoch):
        if epoch == self.at:
            self.model.encoder.requires_grad = True  #- here
#+             self.model.encoder.requires_grad_(True)
            print("encoder is trained from here on")


def run_epoch(model, optimizer, tokens, labels):
    model.train()
    total = 0.0
    for rows in torch.randperm(len(tokens)).split(24):
        loss = F.cross_entropy(model(tokens[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    return total / len(tokens)


torch.manual_seed(57)
tokens = torch.randint(0, 60, (72, 10))
labels = ((tokens < 20).sum(1) > (tokens > 40).sum(1)).long()
model = SentimentModel()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
schedule = GradualUnfreezing(model, at=2)
for epoch in range(5):
    schedule(epoch)  #! also
    print(epoch, run_epoch(model, optimizer, tokens, labels))
