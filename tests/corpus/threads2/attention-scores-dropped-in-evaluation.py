# /// case
# title = "Functional dropout without the mode"
# category = "mode"
# kind = "dropout-always-on"
# severity = "warning"
# names = ["F.dropout", "attn_scores"]
# symptom = "two evaluations of one batch differ"
# symptom_check = "not torch.equal(once, again)"
# cause = "F.dropout is on unless it is told the mode"
# fix = "training=self.training"
# evidence = [
#     { url = "https://github.com/rixwew/pytorch-fm/issues/21", title = "F.dropout的问题" },
#     { url = "https://github.com/delip/PyTorchNLPBook/issues/28", title = "dropout error" },
# ]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class AttentionalFM(nn.Module):
    """Field embeddings, pairwise products, attention pooling."""

    def __init__(self, field_dims, embed_dim=8, attn_size=8, dropouts=(0.2, 0.2)):
        super().__init__()
        self.register_buffer("offsets", torch.tensor([0, *field_dims[:-1]]).cumsum(0))
        self.embedding = nn.Embedding(sum(field_dims), embed_dim)
        self.linear = nn.Embedding(sum(field_dims), 1)
        self.attention, self.projection = nn.Linear(embed_dim, attn_size), nn.Linear(attn_size, 1)
        self.fc = nn.Linear(embed_dim, 1)
        self.dropouts = dropouts

    def forward(self, x):
        x = x + self.offsets
        e = self.embedding(x)
        row, col = torch.triu_indices(e.shape[1], e.shape[1], 1)
        inner = e[:, row] * e[:, col]
        attn_scores = F.softmax(self.projection(F.relu(self.attention(inner))), dim=1)
        attn_scores = F.dropout(attn_scores, p=self.dropouts[0])  #- here
#+         attn_scores = F.dropout(attn_scores, p=self.dropouts[0], training=self.training)
        attn_output = torch.sum(attn_scores * inner, dim=1)
        attn_output = F.dropout(attn_output, p=self.dropouts[1])  #- here
#+         attn_output = F.dropout(attn_output, p=self.dropouts[1], training=self.training)
        return (self.linear(x).sum(1) + self.fc(attn_output)).squeeze(1)


@torch.no_grad()
def test(model, x):
    model.eval()
    return torch.sigmoid(model(x))  #! also


torch.manual_seed(82)
model = AttentionalFM([6, 9, 4, 5])
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=1e-6)
for epoch in range(2):
    model.train()
    for _ in range(3):
        fields = torch.stack([torch.randint(0, n, (32,)) for n in (6, 9, 4, 5)], 1)
        target = (fields[:, 0] > 2).float()
        loss = F.binary_cross_entropy_with_logits(model(fields), target)
        model.zero_grad()
        loss.backward()
        optimizer.step()
    once, again = test(model, fields), test(model, fields)
print(loss.item(), (once - again).abs().max().item())
