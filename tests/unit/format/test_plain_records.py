"""Classes of values that are made without the module ``dataclasses``."""

import pytest

from tachograph.format.plain_records import field, fields_of, record_class, replaced


@record_class
class Point:
    x: int
    y: int = 2
    names: list[str] = field(factory=list)


def test_fields_have_values_in_order_by_name_or_by_default() -> None:
    assert (Point(1).x, Point(1).y, Point(1).names) == (1, 2, [])
    assert Point(1, 5, ["a"]) == Point(x=1, names=["a"], y=5)
    assert Point(1) != Point(2)
    assert repr(Point(1)) == "Point(x=1, y=2, names=[])"
    assert Point(1).names is not Point(1).names
    assert list(fields_of(Point)) == list(fields_of(Point(1))) == ["x", "y", "names"]


def test_a_copy_differs_in_what_is_asked_for_alone() -> None:
    point = Point(1, 5, ["a"])
    assert replaced(point, y=6) == Point(1, 6, ["a"])
    assert point.y == 5


@pytest.mark.parametrize(("values", "named"), [((), {}), ((1, 2, [], 4), {}), ((1,), {"x": 2}), ((1,), {"z": 2})])
def test_what_is_no_value_of_a_field_is_refused(values: tuple[object, ...], named: dict[str, object]) -> None:
    with pytest.raises(TypeError, match="Point"):
        Point(*values, **named)  # type: ignore[arg-type]
