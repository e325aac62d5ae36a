# /// case
# title = "Backward of a total score leaves out the incoming gradient"
# category = "function"
# kind = "custom-function-wrong-gradient"
# severity = "warning"
# names = ["backward", "grad_output", "TotalScore"]
# symptom = "the gradient of the denominator has the wrong scale"
# symptom_check = "gap > 0.1"
# cause = "grad_output is not used"
# fix = "multiply by grad_output"
# evidence = [
#     { url = "https://github.com/k2-fsa/k2/issues/341", title = "Backward of get_tot_scores ignores gradient" },
# ]
# ///
import torch
from torch import nn


class TotalScore(torch.autograd.Function):
    """log of the summed weights of all paths through a linear chain."""

    @staticmethod
    def forward(ctx, arc_scores):
        alpha = arc_scores[:, 0].logsumexp(-1)
        for t in range(1, arc_scores.shape[1]):
            alpha = alpha + arc_scores[:, t].logsumexp(-1)
        ctx.save_for_backward(arc_scores)
        return alpha

    @staticmethod
    def backward(ctx, grad_output):
        (arc_scores,) = ctx.saved_tensors
        return arc_scores.softmax(-1)  #- here
#+         return arc_scores.softmax(-1) * grad_output.view(-1, 1, 1)


class AcousticModel(nn.Module):
    def __init__(self, feat=6, phones=5):
        super().__init__()
        self.tdnn = nn.Conv1d(feat, 16, 3, padding=1)
        self.affine = nn.Linear(16, phones)

    def forward(self, features):
        h = torch.relu(self.tdnn(features.transpose(1, 2))).transpose(1, 2)
        return self.affine(h)


def lfmmi_loss(nnet_output, phones):
    numerator = nnet_output.gather(2, phones.unsqueeze(2)).sum((1, 2))
    denominator = TotalScore.apply(nnet_output)  #! also
    return -(numerator - denominator).sum() / phones.numel()  #! also


torch.manual_seed(111)
model = AcousticModel()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for batch_idx in range(5):
    phones = torch.randint(0, 5, (4, 10))
    features = torch.nn.functional.one_hot(phones, 6).float() + 0.3 * torch.randn(4, 10, 6)
    out = model(features)
    loss = lfmmi_loss(out, phones)
    got = torch.autograd.grad(loss, out, retain_graph=True)[0]
    exact = torch.autograd.grad(nn.functional.cross_entropy(out.flatten(0, 1), phones.flatten()), out, retain_graph=True)[0]
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
gap = (got - exact).abs().max().item()
print(loss.item(), gap)
