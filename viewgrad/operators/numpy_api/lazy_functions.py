"""Functions whose code is generated on the first call, or when their parameters are requested."""

from __future__ import annotations

import inspect
import types
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from ..codegen.generate import compile_source

Source = Callable[[], tuple[str, dict[str, Any]]]


def lazy_function(name: str, source: Source, parameters: Source | None = None) -> types.FunctionType:
    """Return a function whose code is generated on the first call; later calls have no overhead.

    Arguments:
        name: its name.
        source: a function that returns the code and the objects it refers to.
        parameters: the same, for a function with the correct signature and no body; `source` if omitted.
    """
    names: dict[str, Any] = {"__file__": __file__, "__name__": __name__}
    function = types.FunctionType(_first_call.__code__, names, name)
    function.__qualname__ = name
    names["_written_function"] = lambda: _write(function, source)
    function.__signature__ = LazySignature(name, source if parameters is None else parameters)  # type: ignore[attr-defined]
    return function


def _first_call(*args: Any, **options: Any) -> Any:
    return _written_function()(*args, **options)  # type: ignore[name-defined]  # noqa: F821


def _write(function: types.FunctionType, source: Source) -> types.FunctionType:
    """Generate the code of a function, which replaces `_first_call`."""
    text, names = source()
    name = function.__name__
    function.__globals__.update({key: value for key, value in names.items() if key[:2] != "__"})
    written = compile_source(text, f"{name}, public", function.__globals__)[name]
    function.__defaults__, function.__kwdefaults__ = written.__defaults__, written.__kwdefaults__
    function.__code__ = written.__code__
    return function


class LazySignature(inspect.Signature):
    """The parameters of a function, determined on first access.

    Arguments:
        name: the name of the function.
        source: a function that returns the code and the objects it refers to.
    """

    __slots__ = ("_found", "_name", "_source")
    _return_annotation = inspect.Signature.empty

    def __init__(self, name: str, source: Source) -> None:
        self._found: OrderedDict[str, inspect.Parameter] | None = None
        self._name, self._source = name, source

    @property
    def _parameters(self) -> OrderedDict[str, inspect.Parameter]:
        if self._found is None:
            text, names = self._source()
            scope = dict(names)
            exec(text, scope)
            self._found = OrderedDict(inspect.signature(scope[self._name]).parameters)
        return self._found

    def replace(  # type: ignore[override]
        self, *, parameters: Sequence[inspect.Parameter] | None = None, return_annotation: Any = None
    ) -> inspect.Signature:
        """Return a signature with other parameters."""
        return inspect.Signature(self._parameters.values() if parameters is None else parameters)  # type: ignore[arg-type]
