#! kind=requires-grad-on-integer severity=error names=scores
import torch


def calibrate(counts):
    scores = torch.tensor(counts).requires_grad_()  #! here
    probabilities = torch.softmax(scores, 0)
    entropy = -(probabilities * probabilities.log()).sum()
    entropy.backward()
    return scores.grad


print(calibrate([4, 2, 1]))
