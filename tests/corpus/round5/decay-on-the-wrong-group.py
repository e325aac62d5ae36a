# /// case
# title = "Only biases and norms are decayed"
# category = "optimizer"
# kind = "weight-decay-groups-swapped"
# kinds_also_ok = ["weight-decay-on-bias"]
# severity = "warning"
# names = ["no_decay", "weight_decay"]
# symptom = "weight matrices have no decay, norms and biases have"
# symptom_check = "optimizer.param_groups[0]['weight_decay'] > 0 and all(p.ndim == 1 for p in optimizer.param_groups[0]['params'])"
# cause = "the condition of the two groups is the wrong way round"
# fix = "decay what is not in the list"
# evidence = [
#     { url = "https://github.com/facebookresearch/BalancingGroups/issues/6", title = "Weight decay for BERT models" },
# ]
# ///
import torch
import torch.nn as nn

torch.manual_seed(10)


class Encoder(nn.Module):
    def __init__(self, vocab=50, dim=16):
        super().__init__()
        self.embeddings = nn.Embedding(vocab, dim)
        self.attention = nn.MultiheadAttention(dim, 2, batch_first=True)
        self.LayerNorm = nn.LayerNorm(dim)
        self.classifier = nn.Linear(dim, 2)

    def forward(self, ids):
        h = self.embeddings(ids)
        h = self.LayerNorm(h + self.attention(h, h, h, need_weights=False)[0])
        return self.classifier(h[:, 0])


def get_bert_optim(network, lr, weight_decay):
    no_decay = ["bias", "LayerNorm.weight"]
    decay_params, nodecay_params = [], []
    for name, param in network.named_parameters():
        if any(nd in name for nd in no_decay):  #- here
#+         if not any(nd in name for nd in no_decay):
            decay_params.append(param)
        else:
            nodecay_params.append(param)
    return torch.optim.AdamW([
        {"params": decay_params, "weight_decay": weight_decay},  #! also
        {"params": nodecay_params, "weight_decay": 0.0},
    ], lr=lr, eps=1e-8)


network = Encoder()
optimizer = get_bert_optim(network, lr=1e-3, weight_decay=0.1)
ids = torch.randint(0, 50, (40, 10))
y = (ids[:, 1] > 25).long()
for epoch in range(3):
    for idx in torch.randperm(40).split(10):
        loss = nn.functional.cross_entropy(network(ids[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
    print(epoch, loss.item())
