"""BP804 kl-div-without-log."""

HEAD = """
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
teacher, student = nn.Linear(4, 3).requires_grad_(False), nn.Linear(4, 3)
optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
"""

LOOP = """
for x in torch.randn(3, 8, 4):
    loss = divergence(student(x), teacher(x))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

PROGRAMS = {
    "a softmax in the function of the loss": HEAD
    + """
def divergence(logits, wanted, heat=2.0):
    given = F.softmax(logits / heat, dim=1)  # <- BP804
    wanted = F.softmax(wanted / heat, dim=1)
    return F.kl_div(given, wanted, reduction="batchmean") * heat**2
"""
    + LOOP,
    "a softmax in the call of the loss": HEAD
    + """
def divergence(logits, wanted):
    return F.kl_div(logits.softmax(1), wanted.softmax(1), reduction="batchmean")  # <- BP804
"""
    + LOOP,
    "a softmax that the model ends with": HEAD
    + """
student = nn.Sequential(student, nn.Softmax(dim=1))

def divergence(probabilities, wanted):
    return F.kl_div(probabilities, wanted.softmax(1), reduction="batchmean")  # <- BP804
"""
    + LOOP,
    "plain scores": HEAD
    + """
def divergence(scores, wanted):
    scores = 4 * scores
    return nn.KLDivLoss(reduction="batchmean")(scores, wanted.softmax(1))  # <- BP804
"""
    + LOOP,
    "the logarithm is taken of a softmax that is kept": HEAD
    + """
def divergence(logits, wanted):
    given = F.softmax(logits, dim=1)
    return F.kl_div(given.log(), F.softmax(wanted, dim=1), reduction="batchmean")
"""
    + LOOP,
}
