# /// case
# title = "Tensors that are scaled after requires_grad=True are given to the optimizer"
# category = "leaf"
# kind = "non-leaf-given-to-optimizer"
# kinds_also_ok = ["non-leaf-tensor", "scaled-after-requires-grad"]
# severity = "error"
# names = ["requires_grad", "factors"]
# symptom = "the optimizer's constructor raises"
# raises = "ValueError"
# raises_message = "can't optimize a non-leaf Tensor"
# cause = "The product of a leaf with 0.1 is the result of an operation, and not a leaf."
# fix = "scale first, then require grad"
# ///
import torch
import torch.nn.functional as F

torch.manual_seed(83)
ROWS, COLUMNS, RANK = 25, 18, 4


def random_factor(size):
    return torch.randn(size, RANK, requires_grad=True) * 0.1  #- here
#+     return (torch.randn(size, RANK) * 0.1).requires_grad_()


def predict(left, right, index):
    return (left[index[:, 0]] * right[index[:, 1]]).sum(1)


def regulariser(left, right, strength=1e-3):
    return strength * (left.square().sum() + right.square().sum())


def root_error(left, right, index, value):
    with torch.no_grad():
        return F.mse_loss(predict(left, right, index), value).sqrt().item()


truth = torch.randn(ROWS, RANK) @ torch.randn(RANK, COLUMNS)
index = torch.nonzero(torch.rand(ROWS, COLUMNS) < 0.5)
value = truth[index[:, 0], index[:, 1]]
order = torch.randperm(len(index))
train, test = order[len(order) // 5:], order[:len(order) // 5]

left, right = random_factor(ROWS), random_factor(COLUMNS)  #! also
optimizer = torch.optim.Adam([left, right], lr=5e-2)  #! also
for step in range(25):
    rows = train[torch.randperm(len(train))[:64]]
    loss = F.mse_loss(predict(left, right, index[rows]), value[rows]) + regulariser(left, right)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 8 == 0:
        print(step, loss.item(), root_error(left, right, index[test], value[test]))
