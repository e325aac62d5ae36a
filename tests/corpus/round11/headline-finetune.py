# /// case
# title = "requires_grad is set on the module"
# category = "flags"
# kind = "requires-grad-set-on-module"
# kinds_also_ok = ["freeze-without-effect", "module-attribute-requires-grad", "requires-grad-typo"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["encoder", "requires_grad", "freeze_encoder"]
# symptom = "the encoder that should be frozen is trained on"
# symptom_check = "any(not torch.equal(v, pretrained[k]) for k, v in encoder.state_dict().items())"
# cause = "a module has no requires_grad; the assignment only makes an attribute and no parameter is frozen."
# fix = "encoder.requires_grad_(False)"
# ///
import torch
from torch import nn

PAD = 0


class HeadlineEncoder(nn.Module):
    def __init__(self, vocab=60, dim=24, layers=1):
        super().__init__()
        self.embedding = nn.Embedding(vocab, dim, padding_idx=PAD)
        block = nn.TransformerEncoderLayer(dim, 2, 48, dropout=0.1, batch_first=True)
        self.blocks = nn.TransformerEncoder(block, layers, enable_nested_tensor=False)

    def forward(self, ids):
        pad = ids.eq(PAD)
        h = self.blocks(self.embedding(ids), src_key_padding_mask=pad)
        keep = (~pad).unsqueeze(-1).float()
        return (h * keep).sum(1) / keep.sum(1)


class TopicModel(nn.Module):
    def __init__(self, encoder, n_topics):
        super().__init__()
        self.encoder = encoder
        self.classifier = nn.Sequential(nn.Dropout(0.1), nn.Linear(24, n_topics))

    def forward(self, ids):
        return self.classifier(self.encoder(ids))

    def freeze_encoder(self):
        self.encoder.requires_grad = False  #- here
#+         self.encoder.requires_grad_(False)


def headlines(n, topics, offset=0, length=9):
    topic = torch.randint(0, topics, (n,))
    words = 1 + offset + topic[:, None] * 8 + torch.randint(0, 12, (n, length))
    sizes = torch.randint(4, length + 1, (n, 1))
    return words.masked_fill(torch.arange(length) >= sizes, PAD), topic


def train(model, data, epochs, lr):
    ids, topic = data
    trainable = [p for p in model.parameters() if p.requires_grad]  #! also
    optimizer = torch.optim.AdamW(trainable, lr=lr)  #! also
    criterion = nn.CrossEntropyLoss()
    model.train()
    for epoch in range(epochs):
        for batch in torch.randperm(len(ids)).split(32):
            optimizer.zero_grad()
            loss = criterion(model(ids[batch]), topic[batch])
            loss.backward()
            optimizer.step()
    return loss.item()


def count(module):
    return sum(p.numel() for p in module.parameters())


torch.manual_seed(10)
torch.set_num_threads(1)
encoder = HeadlineEncoder()
source = TopicModel(encoder, 4)
print("pretraining loss", train(source, headlines(256, 4), epochs=6, lr=3e-3))

pretrained = {k: v.clone() for k, v in encoder.state_dict().items()}
target = TopicModel(encoder, 3)
target.freeze_encoder()  #! also
print("tuning", count(target.classifier), "of", count(target), "weights")
print("tuning loss", train(target, headlines(96, 3, offset=10), epochs=8, lr=1e-2))
