"""`adopt`: the public function."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, overload

from .entry import adopted_callable
from .packages import PackageModule, adopted_package

F = TypeVar("F", bound=Callable[..., Any])


@overload
def adopt(f: str | types.ModuleType, *, also: Iterable[str] = ()) -> types.ModuleType: ...
@overload
def adopt(f: F, *, also: Iterable[str] = ()) -> F: ...
def adopt(f: Any, *, also: Iterable[str] = ()) -> Any:
    """Return a version of a function or package that computes with viewgrad instead of NumPy, SciPy and math.

    The code stays the same, but names that refer to NumPy's objects refer to those of `viewgrad.numpy`, so
    `np.zeros(3)` creates a tensor. Functions, classes and objects from modules of the same package, or from modules
    that are not installed, are adopted too. The original, its module and NumPy do not change. The transforms
    (`viewgrad.grad`, ...) and `viewgrad.compile` adopt the function passed to them.

    Arguments:
        f: a function, method, class or callable object; or a package or its name, to import a second copy of it.
        also: for a package, the names of imported packages to adopt together with it.

    Returns:
        The adopted function, class or module. If it is already adopted, or there is nothing to adopt, the argument
        itself.

    Raises:
        TypeError: if `f` is neither callable nor a module, or `also` is given for a function.
        ModuleNotFoundError: if there is no package of that name.
        ValueError: for a module that was not imported from a file.

    Example:
        >>> import numpy as np, viewgrad as vg
        >>> def table(x):
        ...     y = np.zeros(2)
        ...     y[0], y[1] = np.sin(x), x**2
        ...     return y
        >>> x = vg.Tensor(3.0, requires_grad=True)
        >>> vg.adopt(table)(x).sum().backward()
        >>> x.grad, np.cos(3.0) + 6.0
        (Tensor(5.0100075), np.float64(5.010007503399555))
    """
    if isinstance(f, str):
        return adopted_package(f, also)
    if isinstance(f, PackageModule):
        return f
    if isinstance(f, types.ModuleType):
        spec = f.__spec__
        if spec is None or f.__name__ == "__main__":
            raise ValueError(
                f"{f.__name__} was not imported from a file, so it cannot be imported again; adopt its functions, "
                "one by one"
            )
        return adopted_package(f.__name__, also)
    if also:
        raise TypeError(f"also= names packages to adopt together with a package, and {f!r} is not a package")
    if not callable(f):
        raise TypeError(f"adopt expects a function, a class, a module or the name of a module, not {type(f).__name__}")
    return adopted_callable(f)
