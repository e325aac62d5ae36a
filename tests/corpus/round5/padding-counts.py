# /// case
# title = "Padding tokens are labels"
# category = "loss"
# kind = "padding-in-loss"
# severity = "warning"
# names = ["labels", "pad_token_id", "ignore_index"]
# symptom = "most of the loss is about predicting padding"
# symptom_check = "counted > real"
# cause = "labels are a copy of the ids, padding included, and nothing is ignored"
# fix = "set padding to the ignored index"
# evidence = [
#     { url = "https://github.com/microsoft/TransformerCompression/pull/98", title = "Shift labels during finetuning and provide correct padding mask" },
# ]
# ///
import torch
import torch.nn as nn


class Config:
    vocab, dim, pad_token_id, eos, max_len = 36, 20, 0, 1, 20


class Decoder(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.embed = nn.Embedding(cfg.vocab, cfg.dim, padding_idx=cfg.pad_token_id)
        self.pos = nn.Embedding(cfg.max_len, cfg.dim)
        self.layer = nn.TransformerEncoderLayer(cfg.dim, 2, 40, dropout=0.0, batch_first=True)
        self.out = nn.Linear(cfg.dim, cfg.vocab)

    def forward(self, ids, attention_mask):
        t = ids.shape[1]
        causal = torch.ones(t, t, dtype=torch.bool).triu(1)
        h = self.embed(ids) + self.pos(torch.arange(t))
        return self.out(self.layer(h, src_mask=causal, src_key_padding_mask=~attention_mask))


class FinetuneTrainer:
    def __init__(self, model, cfg):
        self.model, self.cfg = model, cfg
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
        self.loss_fn = nn.CrossEntropyLoss()
        self.counts = []

    def collate(self, texts):
        ids = nn.utils.rnn.pad_sequence(texts, batch_first=True, padding_value=self.cfg.pad_token_id)
        mask = ids != self.cfg.pad_token_id
        return ids, mask, ids.clone()  #- here
#+         return ids, mask, ids.masked_fill(~mask, -100)

    def compute_loss(self, texts):
        ids, mask, labels = self.collate(texts)
        logits = self.model(ids, mask)[:, :-1]
        shifted = labels[:, 1:]
        self.counts.append(((shifted != self.loss_fn.ignore_index).sum().item(), mask[:, 1:].sum().item()))
        return self.loss_fn(logits.reshape(-1, self.cfg.vocab), shifted.reshape(-1))  #! also

    def train(self, batches):
        for texts in batches:
            loss = self.compute_loss(texts)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        return loss.item()


torch.manual_seed(27)
cfg = Config()
text = lambda n: torch.cat([torch.randint(2, cfg.vocab, (n,)), torch.tensor([cfg.eos])])
batches = [[text(int(n)) for n in torch.randint(2, 18, (8,))] for _ in range(6)]
trainer = FinetuneTrainer(Decoder(cfg), cfg)
print(trainer.train(batches))
counted, real = (sum(c) for c in zip(*trainer.counts))
print(counted, real)
