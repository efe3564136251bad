"""Lists and dicts of functions, models and modules as adopted code sees them.

`METHODS["euler"](x)` and `for layer in self.layers` must find adopted versions. The list or dict of adopted code holds
these, is read at full speed, and applies each change to the user's own one too.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final


class AdoptedList(list[Any]):
    """A list with adopted items; writes reach the original.

    Arguments:
        original: the user's list.
        adopted: returns the adopted version of an item.
        unadopted: returns the user's own object for an adopted version.
    """

    def __init__(
        self, original: list[Any], adopted: Callable[[Any], Any], unadopted: Callable[[Any], Any]
    ) -> None:
        super().__init__(map(adopted, original))
        self.original: Final = original
        self._adopted: Final = adopted
        self._unadopted: Final = unadopted
        self._seen = list(original)

    def refresh(self) -> None:
        """Update the contents from the original."""
        original = self.original
        if len(original) != len(self._seen) or not all(map(operator.is_, original, self._seen)):
            list.__setitem__(self, slice(None), list(map(self._adopted, original)))
            self._seen = list(original)

    def write_original(self) -> None:
        """Copy the contents of this list into the original."""
        self._seen = list(map(self._unadopted, self))
        self.original[:] = self._seen

    def __reduce_ex__(self, protocol: Any) -> Any:
        return list, (list(map(self._unadopted, self)),)


class AdoptedDict(dict[Any, Any]):
    """A dict with adopted values; writes reach the original.

    Arguments:
        original: the user's dict.
        adopted: returns the adopted version of a value.
        unadopted: returns the user's own object for an adopted version.
    """

    def __init__(
        self, original: dict[Any, Any], adopted: Callable[[Any], Any], unadopted: Callable[[Any], Any]
    ) -> None:
        super().__init__({key: adopted(value) for key, value in original.items()})
        self.original: Final = original
        self._adopted: Final = adopted
        self._unadopted: Final = unadopted
        self._seen = dict(original)

    def refresh(self) -> None:
        """Update the contents from the original."""
        original, seen = self.original, self._seen
        if len(original) != len(seen) or not (
            all(map(operator.is_, original, seen)) and all(map(operator.is_, original.values(), seen.values()))
        ):
            dict.clear(self)
            dict.update(self, {key: self._adopted(value) for key, value in original.items()})
            self._seen = dict(original)

    def write_original(self) -> None:
        """Copy the contents of this dict into the original."""
        self._seen = {key: self._unadopted(value) for key, value in self.items()}
        self.original.clear()
        self.original.update(self._seen)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return dict, ({key: self._unadopted(value) for key, value in self.items()},)


def _writing(kind: type, name: str) -> Callable[..., Any]:
    """Return a method that changes the adopted container, and then the original likewise."""
    method = getattr(kind, name)

    def write(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = method(self, *args, **kwargs)
        self.write_original()
        return result

    write.__name__ = name
    return write


for _kind, _base, _names in (
    (
        AdoptedList, list,
        ("append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse", "__setitem__", "__delitem__",
         "__iadd__", "__imul__"),
    ),
    (
        AdoptedDict, dict,
        ("pop", "popitem", "clear", "update", "setdefault", "__setitem__", "__delitem__", "__ior__"),
    ),
):  # fmt: skip
    for _name in _names:
        setattr(_kind, _name, _writing(_base, _name))

CONTAINERS: Final[dict[type, Any]] = {list: AdoptedList, dict: AdoptedDict}
