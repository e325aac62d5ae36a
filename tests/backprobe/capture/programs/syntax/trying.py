import traceback
import torch

w = torch.ones(2, requires_grad=True)

def returns():
    try:
        return w * 2
    finally:
        print("finally")

def overrides():
    try:
        raise ValueError("lost")
    finally:
        return "kept"

def loops():
    for i in range(3):
        try:
            if i == 1:
                continue
            if i == 2:
                break
            print("body", i)
        except KeyError:
            pass
        else:
            print("else", i)
        finally:
            print("finally", i)
    else:
        print("never")
    while True:
        try:
            break
        finally:
            print("broken")
    return i

print(returns(), overrides(), loops())

def group():
    try:
        raise ExceptionGroup("both", [ValueError(1), TypeError(2), ExceptionGroup("in", [KeyError(3), OSError(4)])])
    except* ValueError as eg:
        print(eg.exceptions)
    except* (TypeError, KeyError) as eg:
        g = w * len(eg.exceptions)
        print(g, eg.exceptions)

try:
    group()
except ExceptionGroup as rest:
    traceback.print_exception(rest)

try:
    try:
        torch.ones(2) @ torch.ones(3)
    except RuntimeError as error:
        raise KeyError("from") from error
except KeyError as error:
    traceback.print_exc()
    print(error.__cause__.__class__, error.__context__ is error.__cause__)
try:
    error
except NameError as gone:
    print(gone)

def nested():
    try:
        try:
            1 / 0
        except ZeroDivisionError:
            undefined_name
    except NameError:
        return traceback.format_exc()

print(nested())

def noted(): 
    e = ValueError("with notes"); e.add_note("a note")
    raise e

def again():
    try:
        noted()
    except ValueError:
        raise

a = {"x": {"y": None}}
def carets(t):
    return t.view(2) + a["x"]["y"]["z"] * (t.sum() / len(
        [t for t in
         range(3)]))

for f in (again, lambda: carets(w), lambda: w.nope.more, lambda: (w
        + torch.ones(3)).sum()):
    try:
        f()
    except Exception:
        traceback.print_exc()
try:
    assert w.sum() > 5, f"sum is {w.sum()}"
except AssertionError:
    traceback.print_exc()
loss = (w * 3).sum()
loss.backward()
x = loss.backward(
    retain_graph=True,
)
