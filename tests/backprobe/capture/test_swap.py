"""A swapped function's source stands where it stood: code made of it without our additions is torch's own."""

from __future__ import annotations

import ast
import inspect
from types import CodeType
from typing import Any

import pytest

from backprobe.capture.instrument.observed_functions import list_watched_functions
from backprobe.capture.torch_access import code_patch
from backprobe.capture.tracking.training.watched_functions import TABLE

FUNCTIONS = [*(row.function for row in list_watched_functions()), *(row.function for row in TABLE)]


def shape(code: CodeType) -> Any:
    """What a traceback and a debugger read of a code object, its nested ones included.

    Not how often a place occurs: a method of an imported module is called by another instruction.
    """
    nested = [shape(const) for const in code.co_consts if isinstance(const, CodeType)]
    return code.co_name, code.co_varnames, code.co_firstlineno, set(code.co_positions()), nested


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__qualname__)
def test_a_definition_is_found_where_it_is(function: Any) -> None:
    plain = inspect.unwrap(function)
    tree = ast.Module(body=[code_patch._definition(plain)], type_ignores=[])
    assert shape(code_patch._compile_function(tree, plain)) == shape(plain.__code__)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__qualname__)
def test_a_swapped_function_keeps_the_positions_of_its_lines(function: Any) -> None:
    plain = inspect.unwrap(function)
    code = code_patch.swapped_code(plain, "__bp_nothing__()", "__bp_nothing__()", "__bp_event_gave__(1)")
    definition: Any = code_patch._definition(plain)
    own = {place[0] for place in plain.__code__.co_positions()} | {statement.lineno for statement in definition.body}
    assert {place[0] for place in code.co_positions()} <= own | {None}
    assert code.co_firstlineno == plain.__code__.co_firstlineno
    assert inspect.signature(plain) is not None
    assert code.co_varnames[: plain.__code__.co_argcount] == plain.__code__.co_varnames[: plain.__code__.co_argcount]
