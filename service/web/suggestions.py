"""The name that was probably meant, for a member or a parameter that a schema does not have."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, Final, get_args

from pydantic import BaseModel

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LONGEST: Final = 64
"""Characters of a name that is compared; a stranger's may be as long as a body."""


def suggest_name(model: type[BaseModel], place: Sequence[int | str]) -> str:
    """Return ` Did you mean NAME?`, or nothing if no name that the schema has there is near.

    Args:
        model: Of the whole body or query.
        place: Where the unknown name is, as pydantic has it: the name is the last step.
    """
    name = str(place[-1])
    if len(name) > LONGEST:
        return ""
    models = [model]
    for step in place[:-1]:
        inner = [found for named, part in _name_parts(models) if named == step for found in part]
        models = inner or models  # a place in a list, or the name of a branch, leads to no other schema
    near = difflib.get_close_matches(name, [named for named, _part in _name_parts(models)], n=1)
    return f" Did you mean `{near[0].replace('.*', '.NAME')}`?" if near else ""


def _name_parts(models: Sequence[type[BaseModel]]) -> Iterator[tuple[str, list[type[BaseModel]]]]:
    """Yield each member with the schemas that it may hold."""
    for model in models:
        for name, field in model.model_fields.items():
            yield field.alias or name, list(_find_models(field.annotation))


def _find_models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _find_models(argument)
