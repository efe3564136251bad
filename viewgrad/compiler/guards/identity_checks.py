"""Generated checks of captured state, combined into one expression that each call of a compiled function evaluates."""

from __future__ import annotations

import keyword
from collections.abc import Callable, Sequence
from typing import Any, Final

import attrs

MOST_CHECKED: Final = 200  # the maximum number of checks in one expression
FEW: Final = 3  # the number of successful calls before a check is generated, which takes as long as a hundred of them


@attrs.frozen(eq=False)
class Check:
    """A location that is reached from an object, and the object expected there.

    Attributes:
        root: the object; the number of an argument if `is_argument`.
        steps: the access steps: ("attr", name), ("maybe", name) for an attribute that may be missing, ("cell", None),
            ("get", key) or ("item", key).
        value: the expected object or length, or a key that must be absent.
        how: "is", "length" or "absent".
    """

    root: Any
    steps: Sequence[tuple[str, Any]]
    value: Any
    is_argument: bool = False
    how: str = "is"


def identity_check(checks: Sequence[Check]) -> Callable[[Sequence[Any]], bool]:
    """Return a function of the arguments of a call that tests whether all checks hold.

    A check of a location that does not exist fails.
    """
    space: dict[str, Any] = {}
    names: dict[int, str] = {}

    def named(value: Any) -> str:
        name = names.setdefault(id(value), f"o{len(names)}")
        space[name] = value  # which keeps the object alive, so that its id is not reused
        return name

    tests = []
    for check in checks:
        text = f"arguments[{check.root}]" if check.is_argument else named(check.root)
        for way, key in check.steps:
            if way == "attr":
                is_plain = key.isidentifier() and not keyword.iskeyword(key)
                text = f"{text}.{key}" if is_plain else f"getattr({text}, {key!r})"
            elif way == "maybe":
                text = f"getattr({text}, {key!r}, None)"
            elif way == "cell":
                text = f"{text}.cell_contents"
            else:
                given = repr(key) if type(key) is str else named(key)
                text = f"{text}.get({given})" if way == "get" else f"{text}[{given}]"
        value = named(check.value)
        tests.append({"is": f"{text} is {value}", "length": f"len({text}) == {value}",
                      "absent": f"{value} not in {text}"}[check.how])
    lines = ["def holds(arguments):", "    try:", f"        return {' and '.join(tests) or 'True'}",
             "    except Exception:", "        return False"]
    exec("\n".join(lines), space)
    found: Callable[[Sequence[Any]], bool] = space["holds"]
    return found
