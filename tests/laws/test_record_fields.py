"""Every field of the record says what it means, and what None means in it."""

from backprobe.record import KEYS, TABLES, Environment, Header, Row
from backprobe.record.encoding.versions import ADDED, TIERS
from docs.record_reference import all_rows, every_row, undocumented

PARTS = TABLES | {"header": Header, "environment": Environment}


def unknown(names: set[str]) -> set[str]:
    """Those of `table` and `table.field` that are not there."""
    there = set(PARTS) | {f"{table}.{field}" for table, row in PARTS.items() for field in row.__struct_fields__}
    return names - there


def test_every_field_is_documented_and_says_what_none_means():
    assert [missing for row in every_row().values() for missing in undocumented(row)] == []


def test_the_reference_tells_of_every_row():
    assert set(all_rows()) <= set(every_row().values())
    assert set(TABLES) == set(KEYS) <= set(every_row())


def test_versions_and_tiers_name_what_is_there():
    assert unknown({name for added in ADDED.values() for name in added}) == set()
    assert unknown(set(TIERS)) == set()


def test_a_field_without_its_meaning_is_seen():
    class Planted(Row, frozen=True, kw_only=True):
        """A row.

        Attributes:
            told: Its number.
            gone: No such field.
            silent: It may be None, and does not say
                what that means.
        """

        told: int
        untold: int
        silent: int | None = None

    assert undocumented(Planted) == ["Planted.gone", "Planted.silent: what None means", "Planted.untold"]
    assert Planted not in all_rows()
    assert unknown({"tensors.colour", "tensors", "tensors.shape"}) == {"tensors.colour"}
