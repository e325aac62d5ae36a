"""The expressions of the program: what went into each, and what came out, whether it had a name or not."""

from typing import Literal

from backprobe.record.rows.fields import Col, Dims, Id, Ids, Line, Name, Row


class Operation(Row, frozen=True, kw_only=True):
    """A call, operator, subscript or attribute of the program that was given tensors, or gave one.

    `loss = (a.detach() * b).sum() + c.item()` has five: `.detach` of a; `*` of that and b; `.sum` of that; `.item` of
    c; and `+`, whose result is the tensor that `loss` holds. What is left out: what torch's own functions do inside.

    Attributes:
        operation: Its number, in the order in which they ended.
        statement: The statement in which it stands.
        line: First line of the expression.
        col: First column, 1-based, in code points.
        end_line: Last line.
        end_col: Column after the last.
        function: As written: `torch.cat`, `.detach`, `*`, `[]`, `self.net`; empty for a call of something unnamed.
        thread: In which thread.
        moment: The last moment before its end. None: there was none yet.
        operands: The tensors with a row that went in, in source order.
        inner: The operations whose results went in, where those are no tensors with a row of their own.
        complete: Everything that went in is in operands and inner. False: some of it may be missing, such as a tensor
            that was never seen before, or more elements than are looked at.
        result: tensor; tensors, a tuple, list or dict that holds some; number; array, of numpy; other.
        tensor: The tensor that came out. None: no tensor, or one that never had a row: it was used up in the statement.
        is_value: It is the value of its statement, or one of several: what is bound or returned.
        requires_grad: Of the tensor that came out. None: result is not tensor.
        shape: Of the tensor that came out. None: result is not tensor, or it is strided nested.
        dtype: Of the tensor that came out, without `torch.`; empty: result is not tensor.
    """

    operation: Id
    statement: Id
    line: Line
    col: Col
    end_line: Line
    end_col: Col
    function: Name
    thread: Id = 0
    moment: Id | None = None
    operands: Ids = ()
    inner: Ids = ()
    complete: bool = True
    result: Literal["tensor", "tensors", "number", "array", "other"] = "tensor"
    tensor: Id | None = None
    is_value: bool = False
    requires_grad: bool | None = None
    shape: Dims | None = None
    dtype: Name = ""
