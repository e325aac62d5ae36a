import sys


class Odd(Exception):
    def __str__(self):
        raise ValueError("no text")


def hook(kind, value, tb):
    print("hooked", kind.__name__, tb.tb_lineno, tb.tb_next)


try:
    raise Odd
except Odd:
    pass
try:
    raise ValueError("\ud800 lone")
except ValueError as error:
    print(ascii(str(error)))
sys.excepthook = hook
x = [1, 2]
x[5]
