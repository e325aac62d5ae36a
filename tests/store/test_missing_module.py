"""A module that is not installed is named, with the command that installs it, however deep its error lies."""

import re
from pathlib import Path

import pytest

from store.database.missing_module import EXTRAS, describe_class, describe_missing, missing_module


def raised(source: str) -> BaseException:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - whatever it is
        exec(source, {})
    return caught.value


@pytest.mark.parametrize(
    ("source", "module"),
    [
        ("import absent.inner", "absent"),
        ("try:\n    import absent\nexcept ImportError as error:\n    raise OSError('x') from error", "absent"),
        ("try:\n    import absent\nexcept ImportError:\n    raise OSError('x')", "absent"),
        ("raise ImportError('Missing redis library (pip install redis)')", "redis"),
        ("raise OSError('x')", None),
    ],
)
def test_the_module_is_found(source, module):
    assert missing_module(raised(source)) == module


def test_it_is_named_with_the_extra_that_brings_it():
    assert describe_missing("packaging") == (
        "the Python module `packaging` is not installed: pip install 'backprobe[redis]'"
    )
    assert describe_missing("absent") == "the Python module `absent` is not installed"
    assert describe_class(raised("import redis.absent")).startswith("ModuleNotFoundError: the Python module `redis.abs")
    assert describe_class(OSError("a stranger's text")) == "OSError"


def test_each_extra_that_is_named_exists():
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert set(EXTRAS.values()) <= set(re.findall(r"^(\w+) = \[", text, re.MULTILINE))
