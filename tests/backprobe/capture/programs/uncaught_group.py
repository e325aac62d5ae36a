import torch


def part(n):
    y = torch.ones(n) @ torch.ones(n + 1)


errors = []
for n in (1, 2):
    try:
        part(n)
    except RuntimeError as error:
        error.add_note(f"n={n}")
        errors.append(error)
raise ExceptionGroup("\u2603 all", errors)
