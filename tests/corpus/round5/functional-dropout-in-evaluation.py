# /// case
# title = "F.dropout does not know of evaluation"
# category = "mode"
# kind = "dropout-always-on"
# severity = "warning"
# names = ["F.dropout", "training"]
# symptom = "predictions in evaluation mode are random"
# symptom_check = "not torch.equal(once, again)"
# cause = "training is True unless given"
# fix = "training=self.training"
# evidence = [
#     { url = "https://github.com/rixwew/pytorch-fm/issues/21", title = "F.dropout的问题" },
#     { url = "https://github.com/pytorch/vision/issues/7103", title = "Dropout in SwinTransformer unable to set training=False" },
#     { url = "https://github.com/facebookresearch/DME/issues/3", title = "Dropout is still enabled during inference" },
# ]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class AttentionalFM(nn.Module):
    def __init__(self, field_dims, embed_dim=8, attn_size=8, dropouts=(0.2, 0.2)):
        super().__init__()
        self.register_buffer("offsets", torch.tensor([0, *torch.tensor(field_dims).cumsum(0)[:-1].tolist()]))
        self.embedding = nn.Embedding(sum(field_dims), embed_dim)
        self.linear = nn.EmbeddingBag(sum(field_dims), 1, mode="sum")
        self.attention, self.projection = nn.Linear(embed_dim, attn_size), nn.Linear(attn_size, 1)
        self.fc = nn.Linear(embed_dim, 1)
        self.dropouts = dropouts
        n = len(field_dims)
        self.pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]

    def forward(self, x):
        x = x + self.offsets
        e = self.embedding(x)
        inner = torch.stack([e[:, i] * e[:, j] for i, j in self.pairs], 1)
        attn_scores = self.projection(torch.relu(self.attention(inner))).softmax(dim=1)
        attn_scores = F.dropout(attn_scores, p=self.dropouts[0])  #- here
        attn_output = F.dropout((attn_scores * inner).sum(1), p=self.dropouts[1])  #- here
#+         attn_scores = F.dropout(attn_scores, p=self.dropouts[0], training=self.training)
#+         attn_output = F.dropout((attn_scores * inner).sum(1), p=self.dropouts[1], training=self.training)
        return (self.linear(x) + self.fc(attn_output)).squeeze(1)


torch.manual_seed(68)
model = AttentionalFM([12, 7, 5])
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=1e-6)
fields = torch.stack([torch.randint(0, d, (200,)) for d in (12, 7, 5)], 1)
clicks = ((fields[:, 0] + fields[:, 1]) % 2).float()
for epoch in range(3):
    model.train()
    for idx in torch.randperm(160).split(40):
        loss = F.binary_cross_entropy_with_logits(model(fields[idx]), clicks[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
model.eval()
with torch.no_grad():
    once, again = model(fields[160:]), model(fields[160:])  #! also
print(loss.item(), (once - again).abs().max().item())
