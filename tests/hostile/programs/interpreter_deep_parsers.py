# EXPECT: what is nested without end exhausts its own stack only
# OUTCOME: failed | succeeded | exceeded
# CONTROL: silent: it harms its own process only
import ast, copy, functools, json, pickle, re, sys
sys.setrecursionlimit(10 ** 9)
deep = functools.reduce(lambda inner, _: [inner], range(200_000), [])
for call in (lambda: json.loads('[' * 10 ** 6), lambda: ast.literal_eval('-' * 10 ** 5 + '1'), lambda: re.compile('(' * 10 ** 5), lambda: pickle.dumps(deep), lambda: repr(deep), lambda: copy.deepcopy(deep)):
    try: call()
    except (RecursionError, ValueError, MemoryError, SyntaxError, re.error) as e: print(type(e).__name__)
