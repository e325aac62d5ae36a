"""A request's body and parameters, checked to the letter, before a view sees them.

1. A body is what its bytes say: `null` and `0` are not `{}`, a key given twice is refused, not merged.
2. Every fault is answered at once, each with its pointer or parameter, and never with the value that was sent.
3. Text that a database or a terminal cannot hold (NUL, lone surrogates) stops here.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, TypeVar

from flask import g, request
from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from backprobe.show.plain_text import plain
from service.problems.errors import Place, Problem
from service.web.content import check_content_type, check_encoding
from service.web.suggestions import suggest_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pydantic_core import ErrorDetails

MOST_NESTING: Final = 32
"""Arrays and objects inside each other."""

LONGEST_NAME: Final = 200
"""Characters of a member's name that a pointer repeats: a refused line of an audit is stored with its pointers."""

F = TypeVar("F", bound="Callable[..., Any]")


class Strict(BaseModel):
    """Base of every request schema: unknown fields and wrong types are refused, nothing is converted."""

    PROGRAM: ClassVar[re.Pattern[str] | None] = None
    """Pointers to program text."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, frozen=True, populate_by_name=False)


def _whole(value: object) -> object:
    """JSON Schema calls 3.0 an integer, so we do."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Int = Annotated[int, BeforeValidator(_whole)]
"""An integer of a body; `3.0` is one, `"3"` and `true` are not."""


class _Doubled(ValueError):
    """An object has the same key twice."""


def _no_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _Doubled
    return members


def _no_constant(name: str) -> float:
    message = f"{name} is not JSON"
    raise ValueError(message)


def pointer(parts: Iterable[int | str]) -> str:
    """RFC 6901, as a URI fragment: `#/files/0/text`. A name that no schema has may be as long as a body: it is cut."""
    return "#" + "".join("/" + _shorten_name(str(part)).replace("~", "~0").replace("/", "~1") for part in parts)


def _shorten_name(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}..."


def _read_json(raw: bytes, what: str) -> Any:
    """Parse the bytes as JSON; `what` names them for people.

    Raises:
        Problem: `malformed-request`: not UTF-8, not JSON, a doubled key, or nested too deeply.
    """
    if not raw:
        raise Problem("malformed-request", f"{what} is empty.")
    try:
        return json.loads(raw.decode("utf-8"), object_pairs_hook=_no_doubles, parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise Problem("malformed-request", f"{what} is not UTF-8: byte {error.start} fits no character.") from None
    except json.JSONDecodeError as error:
        said = f"{what} is not JSON: {error.msg} at line {error.lineno}, column {error.colno}."
        raise Problem("malformed-request", said) from None
    except _Doubled:
        raise Problem("malformed-request", f"{what} has an object with the same key twice.") from None
    except RecursionError:
        raise Problem("malformed-request", _TOO_DEEP) from None
    except ValueError as error:  # NaN and Infinity, and integers of more than 4,300 digits
        raise Problem("malformed-request", f"{what} is not JSON: {str(error)[:100]}.") from None


_TOO_DEEP: Final = f"The body is nested more than {MOST_NESTING} deep."


def _check_texts(value: Any, program: re.Pattern[str] | None = None) -> None:
    """Refuse depth and unstorable text, wherever it stands; iterative, since the depth is a stranger's.

    Args:
        value: What was sent.
        program: Pointers to program text, whose NUL characters are a syntax error and told later.
    """
    rest: list[tuple[Any, tuple[int | str, ...]]] = [(value, ())]
    places: list[Place] = []
    while rest:
        part, path = rest.pop()
        if len(path) >= MOST_NESTING and isinstance(part, dict | list):
            raise Problem("malformed-request", _TOO_DEEP)
        if isinstance(part, dict):
            rest.extend((inner, (*path, key)) for key, inner in part.items())
            texts = list(part)
        elif isinstance(part, list):
            rest.extend((inner, (*path, at)) for at, inner in enumerate(part))
            texts = []
        else:
            texts = [part] if isinstance(part, str) else []
        for text in texts:
            fault = _unstorable(text)
            if fault is None:
                continue
            where = pointer(plain(str(step)) for step in path)
            if fault is not _NUL or program is None or not program.fullmatch(where):
                places.append(Place(pointer=where, code="unstorable-text", detail=fault))
    if places:
        raise Problem("invalid-request", places[0].detail, places=tuple(places[:50]))


_NUL: Final = "The text holds a NUL character (U+0000)."


def _unstorable(text: str) -> str | None:
    if "\0" in text:
        return _NUL
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return "The text holds half of a surrogate pair, which is no character."
    return None


def _check_parameters(given: Mapping[str, str]) -> None:
    """Refuse unstorable text in a query."""
    faults = [(name, _unstorable(name) or _unstorable(value)) for name, value in given.items()]
    places = tuple(
        Place(parameter=plain(name)[:100], code="unstorable-text", detail=fault) for name, fault in faults if fault
    )
    if places:
        raise Problem("invalid-request", f"{places[0].parameter}: {places[0].detail}", places=places[:50])


_SAID: Final = {"extra_forbidden": "unknown-field", "missing": "missing-field", "model_type": "not-an-object"}
_WORDS: Final = {"missing": "This field is needed.", "model_type": "The body is not a JSON object."}


def _code(fault: ErrorDetails) -> str:
    return _SAID.get(fault["type"], fault["type"].replace("_", "-"))


def _detail(fault: ErrorDetails, model: type[Strict], unknown: str = "There is no such field.") -> str:
    if fault["type"] == "extra_forbidden":
        return unknown + suggest_name(model, fault["loc"])
    said = fault["msg"].removeprefix("Value error, ").replace("Input should", "It should", 1)
    return _WORDS.get(fault["type"], said.replace(" after validation", "") + ".")[:300]


def _invalid(error: ValidationError, place: Callable[[ErrorDetails], Place]) -> Problem:
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    places = tuple(place(fault) for fault in faults[:50])
    first = places[0]
    where = first.pointer or first.parameter
    more = f" And {len(faults) - 1} more." if len(faults) > 1 else ""
    return Problem("invalid-request", f"{where}: {first.detail}{more}", places=places)


def _handing(view: Callable[..., Any], name: str, model: type[Strict]) -> Callable[..., Any]:
    """Pass what was asked to a view under a name; without it if the model has no fields."""
    if model.model_fields:
        return lambda asked, *args, **kwargs: view(*args, **{name: asked}, **kwargs)
    return lambda _asked, *args, **kwargs: view(*args, **kwargs)


Model = TypeVar("Model", bound=Strict)
LABEL: Final = "label."
LABELS: Final = "label.*"
"""Parameters `label.NAME=VALUE`; a query's field `labels` has this alias."""


def parse_json(raw: bytes, model: type[Model], what: str = "The body") -> Model:
    """Parse the bytes into what they ask for.

    Raises:
        Problem: `malformed-request`, `invalid-request`.
    """
    _check_texts(_read_json(raw, what), model.PROGRAM)
    try:
        return model.model_validate_json(raw)
    except ValidationError as error:
        raise _invalid(
            error, lambda f: Place(pointer=pointer(f["loc"]), code=_code(f), detail=_detail(f, model))
        ) from None


LINES: Final = "application/x-ndjson"


def body(model: type[Strict], *, optional: bool = False, lines: tuple[type[Strict], ...] = ()) -> Callable[[F], F]:
    """Hand the view its body as `body`, an instance of `model`; a model without fields is checked and not handed on.

    Args:
        model: The schema.
        optional: No body at all counts as `{}`.
        lines: It may come as NDJSON too: models of its first line and of the others. Then the view gets None.
    """

    def decorate(view: F) -> F:
        hand = _handing(view, "body", model)

        @functools.wraps(view)
        def call_view(*args: Any, **kwargs: Any) -> Any:
            check_encoding()
            if lines and request.mimetype == LINES:
                return hand(None, *args, **kwargs)
            raw = request.get_data(cache=False)
            g.body_sha256 = hashlib.sha256(raw).digest()
            if not raw and optional:
                return hand(model(), *args, **kwargs)
            check_content_type()
            return hand(parse_json(raw, model), *args, **kwargs)

        call_view.body_model, call_view.body_optional = model, optional  # type: ignore[attr-defined] for the document
        call_view.body_lines = lines  # type: ignore[attr-defined] likewise
        return call_view  # type: ignore[return-value] the decorated view keeps its type

    return decorate


def query(model: type[Strict]) -> Callable[[F], F]:
    """Hand the view its query parameters as `query`, an instance of `model`, whose validators take strings.

    A model without fields is checked and not handed on.
    """

    def decorate(view: F) -> F:
        hand = _handing(view, "query", model)

        @functools.wraps(view)
        def call_view(*args: Any, **kwargs: Any) -> Any:
            return hand(read_query(model), *args, **kwargs)

        call_view.query_model = model  # type: ignore[attr-defined] for the document
        return call_view  # type: ignore[return-value] the decorated view keeps its type

    return decorate


def read_query(model: type[Model]) -> Model:
    """Parse the parameters of the current request.

    Raises:
        Problem: `repeated-parameter`; `invalid-request`, naming each unknown or wrong parameter.
    """
    given = request.args.to_dict(flat=False)
    for name, values in given.items():
        if len(values) > 1:
            detail = f"{name[:100]} is given {len(values)} times."
            raise Problem(
                "repeated-parameter",
                detail,
                places=(Place(parameter=name[:100], code="repeated-parameter", detail=detail),),
            )
    single: dict[str, Any] = {name: values[0] for name, values in given.items()}
    _check_parameters(single)
    if "labels" in model.model_fields and (found := [name for name in single if name.startswith(LABEL)]):
        single[LABELS] = {name.removeprefix(LABEL): single.pop(name) for name in found}
    try:
        return model.model_validate(single)
    except ValidationError as error:

        def place(fault: ErrorDetails) -> Place:
            name = str(fault["loc"][0])[:100] if fault["loc"] else ""
            if name == LABELS:
                name = f"{LABEL}{fault['loc'][1] if len(fault['loc']) > 1 else '*'}"[:100]
            unknown = fault["type"] == "extra_forbidden"
            code = "unknown-parameter" if unknown else _code(fault)
            return Place(parameter=name, code=code, detail=_detail(fault, model, "There is no such parameter."))

        raise _invalid(error, place) from None
