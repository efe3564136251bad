"""The values of an operator with sixty digits, computed by running its own code on arrays of mpmath numbers.

NumPy's functions, and those of `scipy.special`, accept such arrays by NumPy's protocols. The library's functions and
Python's `math` are replaced in copies of the operator's functions. Code that requires floats is not supported: other
SciPy functions, conversions, or memory of floats.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import math
import operator
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

import viewgrad

from ...autograd.function import Function
from ...func.captured_state import names_in
from ...operators.language.spec import Operator
from ...type_aliases import Array
from .arguments import Example

DIGITS: Final = 60


class Unavailable(Exception):
    """Raised if the operator's code does not run on numbers with many digits."""


def _mpmath() -> Any:
    return importlib.import_module("mpmath")


def is_available() -> bool:
    """Return whether mpmath is installed."""
    return importlib.util.find_spec("mpmath") is not None


@contextlib.contextmanager
def with_many_digits() -> Iterator[Any]:
    """Return a context in which mpmath computes with sixty digits; it yields mpmath's context."""
    mp = _mpmath().mp
    with mp.workdps(DIGITS):
        yield mp


class PreciseArray:
    """An array of mpmath numbers that replaces an array or a tensor of floats.

    Arguments:
        numbers: an object array.
    """

    __slots__ = ("numbers",)
    requires_grad = False

    def __init__(self, numbers: Any) -> None:
        self.numbers: Array = np.asarray(numbers, object)

    # -- attributes and protocols --------------------------------------------------------------------------------------

    shape = property(lambda self: self.numbers.shape)
    ndim = property(lambda self: self.numbers.ndim)
    size = property(lambda self: self.numbers.size)
    dtype = property(lambda self: np.dtype(float))
    real = property(lambda self: self)
    T = property(lambda self: PreciseArray(self.numbers.T))

    def __len__(self) -> int:
        return len(self.numbers)

    def __iter__(self) -> Iterator[Any]:
        return (PreciseArray(item) for item in self.numbers)

    def __getitem__(self, index: Any) -> PreciseArray:
        return PreciseArray(self.numbers[_plain(index)])

    def __setitem__(self, index: Any, value: Any) -> None:
        self.numbers[_plain(index)] = as_numbers(value)

    def __bool__(self) -> bool:
        return bool(self.numbers.reshape(-1)[0]) if self.size == 1 else bool(self.numbers)

    def __float__(self) -> float:
        raise Unavailable("it converts numbers to floats")

    def __array__(self, *args: Any, **kwargs: Any) -> Array:
        raise Unavailable("it converts numbers to an array of floats")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method == "__call__":
            return self._through(ufunc.__name__, *inputs, **kwargs)
        if method == "reduce" and ufunc.__name__ in REDUCTIONS:
            return self._through(REDUCTIONS[ufunc.__name__], *inputs, **kwargs)
        raise Unavailable(f"{ufunc.__name__}.{method} has no counterpart")

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return self._through(function.__name__, *args, **kwargs)

    @staticmethod
    def _through(name: str, *args: Any, **kwargs: Any) -> Any:
        return function_named(name)(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in ELEMENTWISE and name not in FUNCTIONS:
            raise Unavailable(f"it has no attribute {name}")
        return lambda *args, **kwargs: self._through(name, self, *args, **kwargs)

    def __neg__(self) -> Any:
        return function_named("negative")(self)

    def __pos__(self) -> PreciseArray:
        return self

    def __abs__(self) -> Any:
        return function_named("abs")(self)

    __hash__ = None  # type: ignore[assignment]


def _binary(name: str, swapped: bool = False) -> Callable[[Any, Any], Any]:
    def method(self: PreciseArray, other: Any) -> Any:
        return function_named(name)(other, self) if swapped else function_named(name)(self, other)

    return method


for _method, _name in {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "pow": "power", "matmul": "matmul",
}.items():  # fmt: skip
    setattr(PreciseArray, f"__{_method}__", _binary(_name))
    setattr(PreciseArray, f"__r{_method}__", _binary(_name, swapped=True))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(PreciseArray, f"__{_name}__", _binary(_name))


def as_numbers(value: Any) -> Any:
    """Return an object array of mpmath numbers; integer and bool arrays are unchanged."""
    if isinstance(value, PreciseArray):
        return value.numbers
    if isinstance(value, viewgrad.Tensor):
        value = value.detach().numpy()
    if isinstance(value, np.ndarray | np.generic | float) and np.asarray(value).dtype.kind == "f":
        mpf = _mpmath().mpf
        return np.vectorize(lambda number: mpf(float(number)), otypes=[object])(value)
    if isinstance(value, list | tuple):
        return np.array([as_numbers(item) for item in value], object)
    return value


def _plain(value: Any) -> Any:
    """Return an index or an option with tensors replaced by plain arrays."""
    if isinstance(value, PreciseArray):
        if all(type(item) in (bool, int, np.bool_, np.int64) for item in value.numbers.reshape(-1)):
            kinds = {type(item) for item in value.numbers.reshape(-1)}
            return value.numbers.astype(bool if kinds <= {bool, np.bool_} else int)
        raise Unavailable("it indexes with computed numbers")
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    return value.numpy() if isinstance(value, viewgrad.Tensor) else value


def _each(name: str) -> Callable[..., Any]:
    """Apply a function of numbers elementwise."""

    def apply(*args: Any, out: Any = None, where: Any = True, **kwargs: Any) -> Any:
        if out is not None or where is not True:
            raise Unavailable(f"{name}(out=...) has no counterpart")
        function = ELEMENTWISE[name](_mpmath().mp)
        result = np.frompyfunc(function, len(args), 1)(*map(as_numbers, args))
        if name in PREDICATES:
            return np.asarray(result, bool)
        return PreciseArray(result)

    return apply


def _power(mp: Any) -> Callable[[Any, Any], Any]:
    def power(base: Any, exponent: Any) -> Any:
        result = mp.power(base, exponent) if base or exponent > 0 else base**exponent if not exponent else mp.inf
        return mp.nan if isinstance(result, mp.mpc) else result

    return power


def _real(name: str) -> Callable[[Any], Any]:
    """Wrap an mpmath function so that it returns NaN where its value is not real."""

    def of(mp: Any) -> Callable[[Any], Any]:
        function = getattr(mp, name)

        def value(x: Any) -> Any:
            if name == "log" and not x:
                return -mp.inf
            result = function(x)
            return mp.nan if isinstance(result, mp.mpc) else result

        return value

    return of


def _divide(mp: Any) -> Callable[[Any, Any], Any]:
    def divide(x: Any, y: Any) -> Any:
        if y:
            return mp.mpf(x) / y
        return mp.nan if not x or mp.isnan(x) else mp.inf * mp.sign(x)

    return divide


ELEMENTWISE: Final[dict[str, Callable[[Any], Callable[..., Any]]]] = {
    **{name: _real(name) for name in ("exp", "log", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "expm1")},
    **{name: _real(name) for name in ("log1p", "cbrt", "log10", "floor", "ceil", "sign", "erf", "erfc")},
    **{f"arc{name}": _real(f"a{name}") for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    "add": lambda mp: operator.add,
    "subtract": lambda mp: operator.sub,
    "multiply": lambda mp: operator.mul,
    "divide": _divide,
    "true_divide": _divide,
    "negative": lambda mp: operator.neg,
    "power": _power,
    "float_power": _power,
    "pow": _power,
    "square": lambda mp: lambda x: x * x,
    "reciprocal": lambda mp: lambda x: _divide(mp)(1, x),
    "abs": lambda mp: abs,
    "absolute": lambda mp: abs,
    "fabs": lambda mp: abs,
    "maximum": lambda mp: max,
    "minimum": lambda mp: min,
    "fmax": lambda mp: max,
    "fmin": lambda mp: min,
    "hypot": lambda mp: mp.hypot,
    "arctan2": lambda mp: mp.atan2,
    "atan2": lambda mp: mp.atan2,
    "exp2": lambda mp: lambda x: mp.power(2, x),
    "log2": lambda mp: lambda x: _real("log")(mp)(x) / mp.log(2),
    "logaddexp": lambda mp: lambda x, y: max(x, y) + mp.log1p(mp.exp(-abs(x - y))),
    "sinc": lambda mp: lambda x: mp.sinc(mp.pi * x),
    "expit": lambda mp: lambda x: 1 / (1 + mp.exp(-x)),
    "log_expit": lambda mp: lambda x: -mp.log1p(mp.exp(-x)),
    "logit": lambda mp: lambda x: _real("log")(mp)(_divide(mp)(x, 1 - x)),
    "ndtr": lambda mp: mp.ncdf,
    "xlogy": lambda mp: lambda x, y: x * mp.log(y) if x else x,
    "xlog1py": lambda mp: lambda x, y: x * mp.log1p(y) if x else x,
    "entr": lambda mp: lambda x: -x * mp.log(x) if x > 0 else x if not x else -mp.inf,
    "exprel": lambda mp: lambda x: mp.expm1(x) / x if x else mp.mpf(1),
    "lt": lambda mp: operator.lt,
    "less": lambda mp: operator.lt,
    "le": lambda mp: operator.le,
    "less_equal": lambda mp: operator.le,
    "gt": lambda mp: operator.gt,
    "greater": lambda mp: operator.gt,
    "ge": lambda mp: operator.ge,
    "greater_equal": lambda mp: operator.ge,
    "eq": lambda mp: operator.eq,
    "equal": lambda mp: operator.eq,
    "ne": lambda mp: operator.ne,
    "not_equal": lambda mp: operator.ne,
    "isnan": lambda mp: mp.isnan,
    "isfinite": lambda mp: lambda x: bool(mp.isfinite(x)),
    "isinf": lambda mp: mp.isinf,
}
PREDICATES: Final = frozenset(
    "lt less le less_equal gt greater ge greater_equal eq equal ne not_equal isnan isfinite isinf".split()
)
REDUCTIONS: Final = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min"}


def _wrap(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a NumPy function so that it also works on object arrays."""

    def apply(*args: Any, **kwargs: Any) -> Any:
        kwargs.pop("dtype", None)
        if kwargs.pop("out", None) is not None:
            raise Unavailable("out= has no counterpart")
        return PreciseArray(function(*map(_numbers_within, args), **kwargs))

    return apply


def _numbers_within(value: Any) -> Any:
    """Apply `as_numbers`, also to each array of a list."""
    if isinstance(value, list | tuple) and any(isinstance(item, PreciseArray) for item in value):
        return [as_numbers(item) for item in value]
    return as_numbers(value)


def _where(condition: Any, x: Any, y: Any) -> PreciseArray:
    chosen = condition.numbers.astype(bool) if isinstance(condition, PreciseArray) else _plain(condition)
    return PreciseArray(np.where(chosen, as_numbers(x), as_numbers(y)))


def _mean(x: Any, axis: Any = None, keepdims: bool = False, **kwargs: Any) -> PreciseArray:
    if kwargs:
        raise Unavailable("options of mean")
    total = np.sum(as_numbers(x), axis=axis, keepdims=keepdims)
    count = np.size(as_numbers(x)) // max(np.size(total), 1)
    return PreciseArray(total / _mpmath().mpf(count))


def _clip(x: Any, low: Any = None, high: Any = None, **kwargs: Any) -> Any:
    low, high = kwargs.get("min", low), kwargs.get("max", high)
    result = x if low is None else function_named("maximum")(x, low)
    return result if high is None else function_named("minimum")(result, high)


def _var(x: Any, axis: Any = None, keepdims: bool = False, **kwargs: Any) -> Any:
    if kwargs:
        raise Unavailable("options of var")
    off = np.asarray(as_numbers(x)) - _mean(x, axis, keepdims=True).numbers
    return _mean(PreciseArray(off * off), axis, keepdims)


def _astype(x: Any, dtype: Any, **kwargs: Any) -> Any:
    kind = np.dtype(dtype).kind
    if kind == "f":
        return PreciseArray(as_numbers(x))
    return np.asarray(as_numbers(x)).astype(dtype)


def _zeros(shape: Any = (), dtype: Any = float, **kwargs: Any) -> Any:
    if np.dtype(dtype or float).kind != "f":
        return np.zeros(shape, dtype)
    return PreciseArray(as_numbers(np.zeros(shape)))


def _logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return function_named("log")(_wrap(np.sum)(function_named("exp")(x), axis=axis, keepdims=keepdims))


def _same(x: Any, *args: Any, **kwargs: Any) -> Any:
    return PreciseArray(as_numbers(x))


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    **{
        name: _wrap(getattr(np, name))
        for name in (
            "sum prod max min amax amin cumsum dot matmul transpose reshape ravel concatenate stack broadcast_to "
            "expand_dims squeeze swapaxes moveaxis repeat tile flip roll outer trace diag diagonal triu tril diff sort "
            "take vdot inner tensordot"
        ).split()
    },
    "where": _where,
    "mean": _mean,
    "var": _var,
    "std": lambda x, *args, **kwargs: function_named("sqrt")(_var(x, *args, **kwargs)),
    "clip": _clip,
    "astype": _astype,
    "zeros": _zeros,
    "zeros_like": lambda x, *args, **kwargs: _zeros(np.shape(as_numbers(x))),
    "ones_like": lambda x, *args, **kwargs: _zeros(np.shape(as_numbers(x))) + 1.0,
    "empty_like": lambda x, *args, **kwargs: _zeros(np.shape(as_numbers(x))),
    "logsumexp": _logsumexp,
    "argmax": lambda x, *args, **kwargs: np.argmax(as_numbers(x), *args, **kwargs),
    "argmin": lambda x, *args, **kwargs: np.argmin(as_numbers(x), *args, **kwargs),
    "argsort": lambda x, *args, **kwargs: np.argsort(as_numbers(x), *args, **kwargs),
    "shape": lambda x: np.shape(as_numbers(x)),
    **dict.fromkeys("Tensor detach numpy clone copy array asarray ascontiguousarray item from_numpy".split(), _same),
}


def function_named(name: str) -> Callable[..., Any]:
    """Return the counterpart of a function of NumPy or the library.

    Raises:
        Unavailable: if there is none.
    """
    if name in ELEMENTWISE:
        return _each(name)
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    raise Unavailable(f"{name} has no counterpart")


class Namespace:
    """A module whose functions are replaced by their counterparts for arrays of mpmath numbers."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._module, name)
        if not callable(value) or name in ("no_grad", "enable_grad"):
            return value
        if isinstance(value, type) and name != "Tensor":
            return value
        return function_named(name)


class Context:
    """The `ctx` of a custom function, which accepts any attribute or call."""

    needs_input_grad: Final = (False,) * 99

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *args, **kwargs: None


def _rebound(function: Any, seen: dict[int, Any]) -> Any:
    """Return a copy of a function in which library functions are replaced by counterparts, recursively."""
    if id(function) in seen:
        return seen[id(function)]
    function = getattr(function, "__func__", function)
    if not isinstance(function, types.FunctionType):
        raise Unavailable("it is not a Python function")
    names: dict[str, Any] = {"__builtins__": __builtins__}
    code = function.__code__
    copy = types.FunctionType(code, names, function.__name__, function.__defaults__, function.__closure__)
    copy.__kwdefaults__ = function.__kwdefaults__
    seen[id(function)] = copy
    for name in names_in(function.__code__):
        if name in function.__globals__:
            copy.__globals__[name] = _counterpart(name, function.__globals__[name], seen)
    return copy


def _counterpart(name: str, value: Any, seen: dict[int, Any]) -> Any:
    if value is viewgrad or value is math:
        return Namespace(value)
    if value is viewgrad.Tensor:
        return _same
    module = str(getattr(value, "__module__", "") or "").split(".")[0]
    if callable(value) and module == "viewgrad" and not isinstance(value, type):
        return function_named(getattr(value, "__name__", name))
    if isinstance(value, types.FunctionType) and module != "numpy":
        return _rebound(value, seen)
    if isinstance(value, types.ModuleType) and value.__name__.split(".")[0] not in ("numpy", "scipy"):
        raise Unavailable(f"it uses {value.__name__}")
    return value


def precise_values(code: Any, example: Example, arrays: Sequence[Array]) -> list[Array]:
    """Return all results with many digits as object arrays; to be called within `with_many_digits`.

    Arguments:
        code: a custom `Function`, a declared operator, or a function of tensors.
        example: the call.
        arrays: the values of its tensors.

    Raises:
        Unavailable: if the code does not run on such numbers.
    """
    operands = [PreciseArray(as_numbers(array)) if array.dtype.kind in "fO" else array for array in arrays]
    args, kwargs = example.filled(operands)
    try:
        if isinstance(code, Operator):
            result = _rebound(code.forward, {})(*args, **kwargs)
        elif isinstance(code, type) and issubclass(code, Function):
            context = () if code.setup_context is not Function.setup_context else (Context(),)
            result = _rebound(code.forward, {})(*context, *args, **kwargs)
        else:
            result = _rebound(code, {})(*args, **kwargs)
    except Unavailable:
        raise
    except Exception as error:
        raise Unavailable(f"{type(error).__name__}: {error}") from error
    results = result if isinstance(result, tuple | list) else [result]
    if not all(isinstance(one, PreciseArray) for one in results):
        raise Unavailable("it returns something other than such arrays")
    return [one.numbers for one in results]
