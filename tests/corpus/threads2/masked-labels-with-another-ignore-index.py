# /// case
# title = "Labels are masked with -100 while the loss ignores -1"
# category = "loss"
# kind = "label-outside-ignore-index"
# severity = "error"
# names = ["ignore_index", "labels", "loss_fct"]
# symptom = "IndexError: Target -100 is out of bounds"
# raises = "IndexError"
# raises_message = "Target -100 is out of bounds"
# cause = "two constants for the ignored label"
# fix = "one constant"
# evidence = [
#     { url = "https://github.com/huggingface/transformers/issues/2759", title = "Loss is calculated on all tokens, including padding, in the LM fine-tuning example" },
# ]
# ///
import torch
from torch import nn


class BertForMaskedLM(nn.Module):
    def __init__(self, vocab=30, dim=16):
        super().__init__()
        self.embeddings = nn.Embedding(vocab, dim)
        layer = nn.TransformerEncoderLayer(dim, 2, 32, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.cls = nn.Linear(dim, vocab)
        self.loss_fct = nn.CrossEntropyLoss(ignore_index=-1)  #- here
#+         self.loss_fct = nn.CrossEntropyLoss(ignore_index=-100)

    def forward(self, input_ids, masked_lm_labels=None):
        scores = self.cls(self.encoder(self.embeddings(input_ids)))
        if masked_lm_labels is None:
            return scores
        return self.loss_fct(scores.view(-1, scores.shape[-1]), masked_lm_labels.view(-1)), scores  #! also


def mask_tokens(inputs, mlm_probability=0.15, mask_id=29):
    inputs, labels = inputs.clone(), inputs.clone()
    masked_indices = torch.bernoulli(torch.full(labels.shape, mlm_probability)).bool()
    masked_indices[:, 0] = True
    labels[~masked_indices] = -100  #! here
    inputs[masked_indices] = mask_id
    return inputs, labels


torch.manual_seed(77)
model = BertForMaskedLM()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(3):
    batch = torch.randint(0, 29, (4, 12))
    inputs, labels = mask_tokens(batch)
    loss, _ = model(inputs, masked_lm_labels=labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
