"""Modules that are imported on first use: importing SciPy takes longer than importing the library itself."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from ..tensor.tensor import LATE


class LazyModule:
    """A SciPy module that is imported when one of its attributes is first accessed.

    Arguments:
        name: the name of the module.
    """

    def __init__(self, name: str) -> None:
        self._name: Final = name
        self._module: ModuleType | None = None
        self._settled = False
        self._waiting: list[Callable[[], None]] = []
        self._lock: Final = threading.RLock()
        LATE.append(self._settle_if_imported)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = getattr(self._loaded(name), name)
        setattr(self, name, value)
        return value

    def is_installed(self) -> bool:
        """Return whether the module can be imported."""
        return importlib.util.find_spec(self._name.partition(".")[0]) is not None

    def when_loaded(self, action: Callable[[], None]) -> None:
        """Call a function as soon as the module is imported."""
        if self._settled:
            action()
        else:
            self._waiting.append(action)

    def _loaded(self, wanted: str) -> ModuleType:
        with self._lock:
            if self._module is None:
                if not self.is_installed():
                    raise ModuleNotFoundError(
                        f"{self._name}.{wanted} is needed, but SciPy is not installed: pip install 'viewgrad[scipy]'"
                    )
                self._module = importlib.import_module(self._name)
                while self._waiting:
                    self._waiting.pop(0)()
                self._settled = True
            return self._module

    def _settle_if_imported(self) -> None:
        if not self._settled and self._name in sys.modules:
            self._loaded(self._name)


class LazyFunction:
    """A function of a `LazyModule`.

    Arguments:
        module: the module.
        name: the name of the function in the module.
    """

    __slots__ = ("module", "name")

    def __init__(self, module: LazyModule, name: str) -> None:
        self.module = module
        self.name = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.found()(*args, **kwargs)

    def found(self) -> Any:
        """Return the function itself."""
        return getattr(self.module, self.name)
