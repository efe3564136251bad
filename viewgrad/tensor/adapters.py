"""The table of adapters: for each NumPy callable, the function that is called instead for tensors.

A row of the operator table *declares* the NumPy callables implemented by its operator. A callable with more options
than the operator has an adapter that takes precedence, and a result with named fields is added by a decorator.
Precedence does not depend on the order of imports, and registering a callable twice on the same level is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

Adapter = Callable[..., Any]


def meaning(adapter: Adapter) -> Adapter:
    """Return the function that an adapter calls if only arguments of that function are given."""
    means: Adapter = getattr(adapter, "means", adapter)
    return means


class AdapterTable(dict[Any, Adapter]):
    """A mapping from NumPy callables to adapters that refuses to replace an adapter.

    Attributes:
        plain: the meanings of the adapters of calls of ufuncs, to be called if there are no options.

    Example:
        >>> table = AdapterTable()
        >>> table.declare(len, lambda x: 1)
        >>> table[len] = lambda x: 2
        >>> table[len]([])
        2
        >>> table[len] = lambda x: 3
        Traceback (most recent call last):
        ...
        ValueError: <built-in function len> already has an adapter
    """

    def __init__(self) -> None:
        super().__init__()
        self.plain: Final[dict[Any, Adapter]] = {}
        self._declared: set[Any] = set()
        self._adapted: set[Any] = set()
        self._decorated: set[Any] = set()

    def declare(self, key: Any, adapter: Adapter) -> None:
        """Register `adapter` for a callable, unless there is a more specific adapter for it.

        Raises:
            ValueError: if the callable was declared before.
        """
        _register_once(self._declared, key, "is already declared")
        if key not in self._adapted:
            self._set(key, adapter)

    def __setitem__(self, key: Any, adapter: Adapter) -> None:
        _register_once(self._adapted, key, "already has an adapter")
        self._set(key, adapter)

    def _set(self, key: Any, adapter: Adapter) -> None:
        super().__setitem__(key, adapter)
        if isinstance(key, tuple) and key[1] == "__call__":
            self.plain[key[0]] = meaning(adapter)

    def decorate(self, key: Any, decorator: Callable[[Adapter], Adapter]) -> None:
        """Replace the adapter of a callable by `decorator(adapter)`; later registrations do not remove it.

        Raises:
            ValueError: if the callable was decorated before.
        """
        _register_once(self._decorated, key, "is already decorated")
        self._set(key, decorator(self[key]))
        self._adapted.add(key)

    def update(self, entries: Mapping[Any, Any], /) -> None:  # type: ignore[override]
        """Add an adapter for each of several callables."""
        for key, adapter in entries.items():
            self[key] = adapter


def _register_once(keys: set[Any], key: Any, problem: str) -> None:
    if key in keys:
        raise ValueError(f"{key!r} {problem}")
    keys.add(key)
