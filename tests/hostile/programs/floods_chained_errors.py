# EXPECT: a chain of a thousand errors is cut
# OUTCOME: failed | exceeded
# CONTROL: silent: the reader counts at every level
def chain(n):
    try:
        if n: chain(n - 1)
        raise KeyError(n)
    except KeyError as e: raise ValueError('x' * 500) from e
chain(400)
