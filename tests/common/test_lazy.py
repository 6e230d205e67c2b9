"""What is worked out only where somebody looks at it."""

from __future__ import annotations

import pickle
from json import JSONDecoder

from stabtree.common.lazy import Imported, Later


def test_it_is_made_once_and_only_where_it_is_looked_at() -> None:
    """Whatever is asked of it afterwards, its maker is not asked again."""
    asked = []
    later = Later(lambda: (asked.append(1) or 3, 1, 2))  # type: ignore[func-returns-value]
    assert not asked
    assert later[0] == 3
    assert (len(later), list(later), later[1:], 2 in later, bool(later)) == (3, [3, 1, 2], (1, 2), True, True)
    assert asked == [1]


def test_it_is_as_good_as_the_tuple() -> None:
    """In comparisons, as a key, in words and through pickle, which needs none of what made it."""
    later = Later(lambda: (1, 2))
    assert later == (1, 2)
    assert later == Later(lambda: (1, 2))
    assert later != (1, 3)
    assert {later: "a"}[Later(lambda: (1, 2))] == "a"
    assert repr(later) == "(1, 2)"
    assert pickle.loads(pickle.dumps(later)) == (1, 2)  # noqa: S301 - our own
    assert not Later(tuple)


def test_a_module_is_imported_with_the_first_of_its_objects() -> None:
    """Names are known before, and another object may stand in for one, as in tests."""
    held: Imported[object] = Imported("json", {"tool": "main", "decoder": "JSONDecoder JSONDecodeError"})
    assert list(held) == ["main", "JSONDecoder", "JSONDecodeError"]
    assert held["JSONDecoder"] is JSONDecoder
    held["main"] = 1
    assert held["main"] == 1
