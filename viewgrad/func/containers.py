"""Containers among the arguments of a function, and detection of changes to their items."""

from __future__ import annotations

from typing import Any, Final

import attrs

from .tree import Structure, children_of, flatten, is_record, unflatten

PLAIN: Final = (int, float, complex, bool, str)


class Containers:
    """The arguments of a function with some leaves replaced.

    If no leaf is replaced, the containers are the caller's own. Otherwise they are copies, and `give_back` applies the
    changes that the function makes to them to the caller's containers.

    Arguments:
        arguments: the caller's `(args, keywords)`.
        structure, leaves: the structure and leaves of the new arguments.

    Attributes:
        given: the new arguments.
    """

    def __init__(self, arguments: Any, structure: Structure, leaves: list[Any]) -> None:
        own = flatten(arguments)[0]
        same = len(own) == len(leaves) and all(a is b for a, b in zip(own, leaves, strict=True))
        self.given = arguments if same else unflatten(structure, leaves)
        self._found: list[tuple[str, Any, Any, tuple[Any, ...], list[Any]]] = []
        self._callers: dict[int, Any] = {}
        self._visit(arguments, self.given, "")

    def _visit(self, own: Any, given: Any, path: str) -> None:
        """Record the contents of a container and of the containers inside it; `own` is the caller's container."""
        self._callers[id(given)] = own
        found = children_of(given)
        if found is None:
            return
        keys, values = found
        if not isinstance(given, tuple):
            self._found.append((path, own, given, keys, values))
        inside = children_of(own)
        assert inside is not None
        for key, mine, value in zip(keys, inside[1], values, strict=True):
            self._visit(mine, value, f"{path}.{key}" if is_record(type(given)) else f"{path}[{key!r}]")

    def changed(self) -> str | None:
        """Return the path of a container whose contents have changed, or None."""
        return next((
            path for path, _, given, keys, values in self._found if is_other(children_of(given), keys, values)
        ), None)  # fmt: skip

    def give_back(self) -> None:
        """Apply the changes that the function made to copied containers to the caller's containers."""
        for _, own, given, keys, before in self._found:
            found = children_of(given)
            if own is given or not is_other(found, keys, before):
                continue
            assert found is not None
            values = [self._callers.get(id(value), value) for value in found[1]]
            if isinstance(own, dict):
                own.clear()
                own.update(zip(found[0], values, strict=True))
            elif isinstance(own, list):
                own[:] = values
            else:
                fields = [field.name for field in attrs.fields(type(own)) if field.init]
                for name, value in zip(fields, values, strict=True):
                    object.__setattr__(own, name, value)


def is_other(found: tuple[tuple[Any, ...], list[Any]] | None, keys: tuple[Any, ...], values: list[Any]) -> bool:
    """Return whether a container holds different objects than before."""
    if found is None or found[0] != keys:
        return True
    return any(
        now is not value and not (type(now) is type(value) and type(now) in PLAIN and now == value)
        for now, value in zip(found[1], values, strict=True)
    )
