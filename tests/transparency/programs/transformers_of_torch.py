"""nn.Transformer training and its fast path, attention, recurrent nets, convolutions, norms, losses, parametrizations."""
import warnings

import torch
from torch import nn
from torch.nn.utils import parametrizations, prune

warnings.simplefilter("ignore")
torch.manual_seed(0)
model = nn.Transformer(16, 4, 2, 2, 32, batch_first=True)
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
a, b = torch.randn(2, 5, 16), torch.randn(2, 4, 16)
for _ in range(3):
    optimizer.zero_grad()
    loss = model(a, b, tgt_mask=nn.Transformer.generate_square_subsequent_mask(4)).square().mean()
    loss.backward()
    optimizer.step()
print(loss.item().hex())
model.eval()
for context in (torch.no_grad(), torch.inference_mode()):
    with context:
        print(model.encoder(a, src_key_padding_mask=torch.tensor([[False] * 3 + [True] * 2] * 2)).double().sum().item().hex())
q = torch.randn(2, 4, 6, 8, requires_grad=True)
nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True).sum().backward()
print(q.grad.sum().item().hex())
for cell in (nn.LSTM(4, 5, 2, bidirectional=True, dropout=0.2), nn.GRU(4, 5), nn.RNN(4, 5)):
    x = torch.randn(6, 3, 4, requires_grad=True)
    out = cell(nn.utils.rnn.pack_padded_sequence(x, [6, 4, 2]))[0]
    nn.utils.rnn.pad_packed_sequence(out)[0].sum().backward()
    print(type(cell).__name__, x.grad.sum().item().hex())
lstm = nn.LSTMCell(3, 4)
h = c = torch.zeros(2, 4)
for _ in range(5):
    h, c = lstm(torch.randn(2, 3), (h, c))
h.sum().backward()
print(lstm.weight_hh.grad.sum().item().hex())
conv = nn.Sequential(
    nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.GroupNorm(2, 8),
    nn.ConvTranspose2d(8, 4, 2, 2), nn.InstanceNorm2d(4), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.LayerNorm(16), nn.Dropout(0.3),
    nn.utils.parametrizations.weight_norm(nn.Linear(16, 8)), parametrizations.spectral_norm(nn.Linear(8, 4)), nn.GLU(),
)
prune.l1_unstructured(conv[0], "weight", 0.5)
image = torch.randn(4, 3, 8, 8)
target = torch.tensor([0, 1, 0, 1])
for _ in range(2):
    nn.functional.cross_entropy(conv(image), target, label_smoothing=0.1).backward()
print(sum(p.grad.double().sum().item() for p in conv.parameters() if p.grad is not None).hex(), conv[1].running_mean.tolist())
losses = [nn.MSELoss(), nn.L1Loss(), nn.HuberLoss(), nn.BCEWithLogitsLoss(), nn.SmoothL1Loss(), nn.KLDivLoss(reduction="batchmean")]
t = torch.randn(4, 3, requires_grad=True)
for kind in losses:
    kind(t, torch.rand(4, 3)).backward()
nn.CTCLoss()(torch.randn(5, 1, 4).log_softmax(2).requires_grad_(), torch.tensor([[1, 2]]), torch.tensor([5]), torch.tensor([2])).backward()
nn.TripletMarginLoss()(t, t * 2, torch.rand(4, 3)).backward()
print(t.grad.sum().item().hex())
e = torch.einsum("bij,bjk->bik", torch.randn(2, 3, 4, requires_grad=True), torch.randn(2, 4, 5))
r = e.reshape(2, 3, 5).permute(2, 0, 1).flatten(1).unfold(1, 2, 2).movedim(0, -1).contiguous()
r.logsumexp(0).sum().backward()
print(torch.linalg.svd(torch.eye(3, requires_grad=True) * 2)[1].sum(), torch.stft(torch.randn(64), 16, return_complex=True, window=torch.hann_window(16)).shape)
m = nn.ModuleDict({"a": nn.Linear(2, 2), "b": nn.ModuleList([nn.Linear(2, 2)])})
shared = m["a"].weight
m["b"][0].weight = shared
m["b"][0](m["a"](torch.ones(1, 2))).sum().backward()
print(shared.grad.tolist(), len(list(m.parameters())))
distribution = torch.distributions.Normal(torch.zeros(2, requires_grad=True), torch.ones(2, requires_grad=True))
sample = distribution.rsample()
(distribution.log_prob(sample).sum() + distribution.entropy().sum()).backward()
print(distribution.loc.grad.tolist())
