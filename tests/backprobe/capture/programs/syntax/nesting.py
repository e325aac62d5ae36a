import torch
x = torch.ones(2, requires_grad=True)
def deep():
    y = x
    for a in range(1):
        for b in range(1):
            while True:
                if a == 0:
                    if b == 0:
                        try:
                            with torch.no_grad():
                                for c in range(1):
                                    if c == 0:
                                        try:
                                            for d in range(1):
                                                if d == 0:
                                                    y = y * 2
                                        finally:
                                            y = y + 1
                        except ValueError:
                            pass
                break
    return y
print(deep())
longest = x + 0 + 1 - 1 + 1 - 1 + 1 - 1 + 1 - 1 + 1 - 1 + 1 - 1 + 1 - 1 + 1 - 1 + 1 - 1 + 1 - 1 + 1 - 1 + 1 - 1 + 1 - 1 + 1 - 1 + 1 - 1 + 1 - 1 + 1 - 1 + 1 - 1 + 1 - 1 + 1 - 1 + 1 - 1 + 1 - 1 + 1 - 1
print(longest, ((((((((((((((((((((x)))))))))))))))))))), [[[[[[[[[[x.sum()]]]]]]]]]])
f = lambda a: lambda b: lambda c: lambda d: (a, b, c, d)
print(f(1)(2)(3)(x))
def a():
    def b():
        def c():
            def d():
                class E:
                    class F:
                        def g(self):
                            def h():
                                return x * 2, E.F.g.__qualname__
                            return h()
                return E.F().g()
            return d()
        return c()
    return b()
print(a())
print(eval("+".join(["1"] * 500)))
