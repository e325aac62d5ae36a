# /// case
# category = "leaf"
# kind = "requires-grad-on-integer"
# severity = "error"
# names = ["scores"]
# ///
#-
import torch


def calibrate(counts):
    scores = torch.tensor(counts).requires_grad_()  #- here
#+     scores = torch.tensor(counts, dtype=torch.float32).requires_grad_()
    probabilities = torch.softmax(scores, 0)
    entropy = -(probabilities * probabilities.log()).sum()
    entropy.backward()
    return scores.grad


print(calibrate([4, 2, 1]))
