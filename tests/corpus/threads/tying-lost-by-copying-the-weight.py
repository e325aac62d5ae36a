# /// case
# title = "The output layer gets a copy of the embedding instead of the embedding"
# category = "uncovered"
# kind = "tying-lost"
# severity = "warning"
# names = ["lm_head", "weight"]
# symptom = "after training, the two matrices differ"
# symptom_check = "not torch.equal(model.lm_head.weight, model.embed.weight)"
# cause = "nn.Parameter(w.clone()) is another parameter"
# fix = "assign the parameter itself"
# evidence = [
#     { url = "https://github.com/google/torchax/issues/68", title = "How torchax handle tied_embedding?" },
#     { url = "https://github.com/huggingface/lerobot/issues/2151", title = '"model.model.paligemma_with_expert.paligemma.model.language_model.embed_tokens" parameter is missing in pretrained weight "lerobot/pi0_base"' },
# ]
# ///
import torch
from torch import nn


class TinyLM(nn.Module):
    def __init__(self, vocab=24, dim=12):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.lm_head = nn.Linear(dim, vocab, bias=False)
        self.tie_weights()

    def tie_weights(self):
        self.lm_head.weight = nn.Parameter(self.embed.weight.clone())  #- here
#+         self.lm_head.weight = self.embed.weight

    def forward(self, ids):
        return self.lm_head(self.rnn(self.embed(ids))[0])


torch.manual_seed(9)
model = TinyLM()
opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
for _ in range(5):
    ids = torch.randint(0, 24, (4, 9))
    loss = nn.functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
