# /// case
# title = "An initialisation after tying gives the head its own weights"
# category = "identity"
# kind = "broken-weight-tying"
# kinds_also_ok = ["parameter-replaced"]
# severity = "warning"
# names = ["tie_weights", "init_weights", "lm_head"]
# symptom = "embedding and head drift apart"
# symptom_check = "model.lm_head.weight is not model.wte.weight"
# cause = "init_weights assigns new parameters after the weights were tied"
# fix = "initialise in place, or tie again after"
# evidence = [
#     { url = "https://github.com/Modalities/modalities/issues/357", title = "Weight tying breaks with meta device initialisation" },
#     { url = "https://github.com/facebookresearch/lingua/issues/74", title = "How to correctly handle embedding tying?" },
# ]
# ///
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class GPT2LLMConfig:
    vocab_size: int = 48
    n_embd: int = 16
    sequence_length: int = 10
    use_weight_tying: bool = True
    std: float = 0.02


class GPT2LLM(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.wte, self.wpe = nn.Embedding(cfg.vocab_size, cfg.n_embd), nn.Embedding(cfg.sequence_length, cfg.n_embd)
        self.block = nn.TransformerEncoderLayer(cfg.n_embd, 2, 4 * cfg.n_embd, dropout=0.0, batch_first=True, norm_first=True)
        self.ln_f = nn.LayerNorm(cfg.n_embd)
        self.lm_head = nn.Linear(cfg.n_embd, cfg.vocab_size, bias=False)
        self.tie_weights()  #! also

    def tie_weights(self):
        if self.cfg.use_weight_tying:
            self.lm_head.weight = self.wte.weight

    def init_weights(self):
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                module.weight = nn.Parameter(torch.randn_like(module.weight) * self.cfg.std)  #- here
#+                 nn.init.normal_(module.weight, std=self.cfg.std)

    def forward(self, ids):
        t = ids.shape[1]
        h = self.wte(ids) + self.wpe(torch.arange(t))
        h = self.block(h, src_mask=nn.Transformer.generate_square_subsequent_mask(t), is_causal=True)
        return self.lm_head(self.ln_f(h))


torch.manual_seed(18)
model = GPT2LLM(GPT2LLMConfig())
model.init_weights()  #! also
print("parameters:", sum(p.numel() for p in model.parameters()))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
text = torch.randint(0, 48, (300,))
for step in range(8):
    start = torch.randint(0, 289, (6,))
    chunk = torch.stack([text[s:s + 11] for s in start])
    logits = model(chunk[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), chunk[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
