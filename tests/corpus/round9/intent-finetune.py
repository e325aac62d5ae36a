# /// case
# title = "The encoder is frozen by an attribute that a module does not have"
# category = "flags"
# kind = "requires-grad-set-on-module"
# kinds_also_ok = ["freeze-has-no-effect", "requires-grad-attribute-of-module", "backbone-not-frozen"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["requires_grad", "encoder"]
# symptom = "the encoder that should be frozen is trained along with the head"
# symptom_check = "not torch.equal(model.encoder.embed.weight, checkpoint['embed.weight'])"
# cause = "Assigning requires_grad to a Module only sets an attribute; its parameters are left as they were."
# fix = "self.encoder.requires_grad_(False)"
# ///
import torch
import torch.nn as nn


class Encoder(nn.Module):
    def __init__(self, vocab=64, width=24):
        super().__init__()
        self.embed = nn.Embedding(vocab, width, padding_idx=0)
        layer = nn.TransformerEncoderLayer(width, 4, 48, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)

    def forward(self, ids):
        pad = ids == 0
        hidden = self.layers(self.embed(ids), src_key_padding_mask=pad)
        keep = (~pad).unsqueeze(-1).float()
        return (hidden * keep).sum(1) / keep.sum(1)


class IntentClassifier(nn.Module):
    def __init__(self, encoder, intents):
        super().__init__()
        self.encoder = encoder  #! also
        self.encoder.requires_grad = False  #- here
#+         self.encoder.requires_grad_(False)
        self.head = nn.Sequential(nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, intents))

    def forward(self, ids):
        return self.head(self.encoder(ids))


def utterances(count, length=9):
    ids = torch.randint(1, 64, (count, length))
    lengths = torch.randint(3, length + 1, (count, 1))
    return ids.masked_fill(torch.arange(length) >= lengths, 0), nn.functional.one_hot(ids % 5, 5).sum(1).argmax(1)


def load_encoder(checkpoint):
    encoder = Encoder()
    encoder.load_state_dict(checkpoint)
    return encoder


torch.manual_seed(31)
checkpoint = {name: value.clone() for name, value in Encoder().state_dict().items()}
model = IntentClassifier(load_encoder(checkpoint), intents=5)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)  #! also
loss_fn = nn.CrossEntropyLoss()
for step in range(12):
    ids, intents = utterances(32)
    optimizer.zero_grad()
    loss = loss_fn(model(ids), intents)
    loss.backward()
    optimizer.step()
trainable = sum(p.numel() for p in model.parameters() if p.grad is not None)
print(f"loss {loss.item():.3f}, {trainable} trained parameters")
