"""The public counterpart of each NumPy function: `viewgrad.sum` and `viewgrad.numpy.sum` are the same object.

It has NumPy's parameters, followed by those that only the library's own function has, such as `dim` and
`requires_grad`. If its first argument is a tensor, it calls the operator directly. Everything else, such as numbers,
arrays, lists of tensors, and options that the operator does not have, is passed to the `adapted` NumPy function; calls
that this rejects, such as `zeros(2, 3)`, are passed to the library's own function.

The code of a function is generated on its first call.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import attrs
import numpy as np

from ...errors import AutogradError
from ...tensor.adapters import meaning
from ...tensor.creation import as_operand
from ...tensor.tensor import FUNCTIONS, UFUNCS, Tensor
from ...views import view_ops
from .adapted import LISTS, LOOKING, adapted
from .creation import MAKERS
from .dispatch import in_numpy_names, numpy_parameters, renamed_parameters
from .lazy_functions import lazy_function
from .universal import UNIVERSAL

Parameter = inspect.Parameter
FROM_NUMPY: Final = (types.FunctionType, types.BuiltinFunctionType, np.ufunc, type(np.dot))
NAMED: Final = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
STARRED: Final = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
POSITIONAL: Final = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
SYNONYMS: Final = {"dim": "axis", "keepdim": "keepdims"}
NEWER: Final = {"newshape": "shape"}  # by the names of the parameters in NumPy 2.0
# The names that the array API standard uses for positional parameters; NumPy accepts them by keyword only.
STANDARD: Final = {"clip": {"a_min": "min", "a_max": "max"}}

# Functions whose adapters do more than the library's own functions, and the NumPy parameters for which the results
# agree.
AGREEING: Final[dict[str, tuple[str, ...]]] = {
    "angle": ("z",),
    "clip": ("a", "a_min", "a_max", "min", "max"),
    "cumulative_prod": ("x", "axis", "dtype", "include_initial"),
    "cumulative_sum": ("x", "axis", "dtype", "include_initial"),
    "empty_like": ("prototype", "dtype", "device"),
    "interp": ("x", "xp", "fp"),
    "median": ("a", "axis"),
    "nanmedian": ("a", "axis"),
    "ones_like": ("a", "dtype", "device"),
    "ravel": ("a",),
    "searchsorted": ("a", "v", "side"),
    "unique": ("ar", "axis"),
    "zeros_like": ("a", "dtype", "device"),
}

# Functions that create tensors, and the conditions under which the library's own functions agree with NumPy's.
PLAINLY: Final = {
    "arange": "type(start) in NUMBERS and type(stop) in NUMBERS and type(step) in NUMBERS",
    "array": "type(object) is list and (dtype is None or (type(dtype) is type and dtype in REALS))",
    "asarray": "type(a) is Tensor and a._array.ndim",
    "eye": "type(N) is int",
    "full": "type(fill_value) in NUMBERS",
    "linspace": "type(start) in NUMBERS and type(stop) in NUMBERS",
}
NUMBERS: Final = frozenset({int, float, type(None)})
REALS: Final = frozenset({float, np.float64, np.float32})
# Functions that are called directly if all arguments are lengths, shapes or tensors.
QUICK: Final[dict[Any, Callable[..., Any]]] = {**MAKERS, np.reshape: view_ops.reshape}

TARGETS: Final = (Tensor, np.ndarray)  # the types of `out`

# The public functions created so far, by NumPy function.
PUBLIC: Final[dict[Any, Any]] = {}


@attrs.frozen
class Public:
    """The parts from which a public function is generated.

    Arguments:
        name: its name.
        function: the function of NumPy.
        general: a function that computes the same as NumPy's function, for any arguments that NumPy accepts.
        own: the library's function of that name, whose options may differ; None if there is none.
        creates: whether it creates a tensor, so that `own` is called for any first argument.
    """

    name: str
    function: Callable[..., Any]
    general: Callable[..., Any]
    own: Callable[..., Any] | None
    creates: bool

    def source(self, bound: bool) -> tuple[str, dict[str, Any]]:
        """Return the code and the objects it refers to.

        Arguments:
            bound: whether the first parameter is the object to which the function is bound.
        """
        head = ["_"] if bound else []
        handler = self.general if self.creates else FUNCTIONS.get(self.function)
        theirs = _theirs(self.name, self.general if self.creates else self.function)
        if handler is None or theirs is None or any(each.kind in STARRED for each in theirs):
            return self._forwarding(head, handler)
        if self.own is not None and any(each.kind is Parameter.VAR_POSITIONAL for each in _parameters(self.own)):
            return self._of_lengths(head, theirs)
        direct, agreeing = meaning(handler), AGREEING.get(self.name, ())
        if self.own is not None and (agreeing or self.name in PLAINLY):
            direct = self.own
        writer = _Writer(self, theirs, direct, agreeing)
        return writer.source(head), writer.names

    def parameters(self, bound: bool) -> tuple[str, dict[str, Any]]:
        """Return the code of a function with NumPy's parameters, followed by those added by the library's function."""
        theirs = _theirs(self.name, self.function)
        if theirs is None and self.own is not None:  # compiled functions have no signatures up to NumPy 2.3
            theirs = [each for each in _parameters(self.own) if each.kind not in STARRED]
        if theirs is None:
            return self.source(bound)
        theirs = [each.replace(name=NEWER.get(each.name, each.name)) for each in theirs]
        handler = FUNCTIONS.get(self.function, self.own)
        return _Writer(self, theirs, self.function if handler is None else meaning(handler), ()).described(bound)

    def _forwarding(self, head: list[str], handler: Callable[..., Any] | None) -> tuple[str, dict[str, Any]]:
        """Return the code of a function that forwards all of its arguments."""
        lines = [f"def {self.name}({', '.join([*head, '*args'])}, **options):"]
        test = "args and type(args[0]) is Tensor"
        if self.function in LOOKING:
            test = "Tensor in map(type, args)"
        elif self.own is not None and self.name in AGREEING:
            handler = self.own
            test += f" and not options and len(args) <= {len(AGREEING[self.name])}"
        if handler is not None and not self.creates:
            lines += [
                f"    if {test}:",
                "        try:",
                "            return direct(*args, **options)",
                "        except TypeError:",
                "            pass",
            ]
        lines.append("    return computed(args, options, (args, options))")
        return "\n".join(lines) + "\n", {"Tensor": Tensor, "computed": self.computed, "direct": handler}

    def _of_lengths(self, head: list[str], theirs: list[inspect.Parameter]) -> tuple[str, dict[str, Any]]:
        """Return the code of a function that also accepts lengths, or numbers of dimensions, as separate arguments."""
        own, creates = self.own, self.creates
        assert own is not None
        count = sum(each.kind in POSITIONAL for each in _parameters(own))
        names = [NEWER.get(each.name, each.name) for each in theirs[:count]]
        given = ", ".join(names)
        defaults = "=()" if creates else ""
        lines = [
            f"def {self.name}({', '.join([*head, given])}{defaults}, *more, **options):",
            f"    if not options{'' if creates else f' and type({names[0]}) is Tensor'}:",
            "        try:",
            "            if not more:",
            f"                return quick({given})",
            f"            return quick({f'({given}, *more)' if creates else f'{given}, *more'})",
            "        except TypeError:",
            "            pass",
            f"    return remaining(({given},), more, options)",
        ]

        def remaining(values: tuple[Any, ...], more: tuple[Any, ...], options: dict[str, Any]) -> Any:
            if not (creates or more):
                return self.computed(values, options, (values, options))
            try:
                return own(*(values if creates else (as_operand(values[0]), *values[1:])), *more, **options)
            except TypeError:
                return self.general(*values, *more, **options)

        quick = QUICK.get(self.function, own)
        return "\n".join(lines) + "\n", {"Tensor": Tensor, "quick": quick, "remaining": remaining}

    def computed(self, args: Any, options: dict[str, Any], given: tuple[Any, dict[str, Any]]) -> Any:
        """Return code that calls NumPy's function, or the library's function for arguments that NumPy's rejects.

        Arguments:
            args, options: the arguments, for NumPy's function.
            given: the arguments, for the library's function.
        """
        try:
            return self.general(*args, **_in_numpy_names(options))
        except TypeError as error:
            # Rejected by the library itself, or with NumPy's `out`, at whose position `own` has another parameter.
            if self.own is None or isinstance(error, AutogradError) or isinstance(options.get("out"), TARGETS):
                raise
            try:
                return self.own(*given[0], **_in_numpy_names(given[1]))
            except TypeError:
                raise error from None


def _theirs(name: str, function: Callable[..., Any]) -> list[inspect.Parameter] | None:
    """Return NumPy's parameters, using the standard's names for positional ones, with NumPy's names as keywords."""
    theirs, renamed = numpy_parameters(function), STANDARD.get(name, {})
    if theirs is None or not {each.name for each in theirs}.issuperset(renamed.values()):
        return theirs
    kept = [each for each in theirs if each.name not in renamed.values()]
    listed = [each.replace(name=renamed.get(each.name, each.name)) for each in kept]
    older = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in theirs if each.name in renamed]
    return sorted([*listed, *older], key=lambda each: each.kind)


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    return list(inspect.signature(function).parameters.values())


def _in_numpy_names(options: dict[str, Any]) -> dict[str, Any]:
    return in_numpy_names(options) if "dim" in options or "keepdim" in options else options


class _Writer:
    """Generates a function with NumPy's parameters and additional ones.

    Arguments:
        public: the parts of the function.
        theirs: NumPy's parameters.
        direct: the function that computes it for tensors.
        agreeing: the NumPy parameters for which `direct` computes the same; if empty, all of its parameters.
    """

    def __init__(
        self, public: Public, theirs: list[inspect.Parameter], direct: Callable[..., Any], agreeing: tuple[str, ...]
    ) -> None:
        self.public = public
        self.theirs = theirs
        self.ours = {each.name: each for each in _parameters(direct)}
        self.own = {} if public.own is None else {each.name: each for each in _parameters(public.own)}
        renamed = renamed_parameters(theirs, self.ours)
        self.ours_of: dict[str, str] = {}
        for each in theirs:
            name = renamed.get(each.name, each.name)
            known = name in self.ours and self.ours[name].kind not in STARRED and name not in self.ours_of.values()
            if known and (not agreeing or each.name in agreeing):
                self.ours_of[each.name] = name
        self.extra = self._extra()
        self.names: dict[str, Any] = {"NUMBERS": NUMBERS, "REALS": REALS, "Tensor": Tensor, "direct": direct}

    def source(self, head: list[str]) -> str:
        """Return the code, after the parameters in `head`."""
        lines = [f"def {self.public.name}({', '.join(head + self._listed())}):", *self._synonyms()]
        return "\n".join([*lines, *self._fast(), *self._slow()]) + "\n"

    def described(self, bound: bool) -> tuple[str, dict[str, Any]]:
        """Return the code of a function with the given parameters and an empty body."""
        listed = ", ".join(["_"] * bound + self._listed())
        return f"def {self.public.name}({listed}): ...\n", self.names

    def _synonyms(self) -> list[str]:
        lines = []
        for theirs, ours in SYNONYMS.items():
            if theirs in self.extra and any(each.name == ours for each in self.theirs):
                lines += [f"    if {theirs} is not None:", f"        {ours} = {theirs}"]
        return lines

    def _extra(self) -> dict[str, Any]:
        """Return the parameters that NumPy's function does not have, with their defaults."""
        taken = {*self.ours_of.values(), *(each.name for each in self.theirs)}
        found = {}
        for each in (*self.ours.values(), *self.own.values()):
            if each.kind in NAMED and each.default is not Parameter.empty and each.name not in taken:
                found[each.name] = each.default
        for synonym, name in SYNONYMS.items():
            if not self.public.creates and any(each.name == name for each in self.theirs):
                found[synonym] = None
        return found

    @property
    def takes_more(self) -> bool:
        """True if the library's function takes more positional arguments than NumPy's."""
        own = sum(each.kind in POSITIONAL for each in self.own.values())
        return own > sum(each.kind in POSITIONAL for each in self.theirs)

    def _default(self, name: str, value: Any) -> str:
        """Return the source text of a default."""
        if value is None or value is True or value is False:
            return str(value)
        key = f"default_{name}"
        self.names[key] = value
        return key

    def _default_of(self, parameter: inspect.Parameter) -> Any:
        """Return the default of a NumPy parameter, or that of the library's function if it has one."""
        ours = self.ours.get(self.ours_of.get(parameter.name, ""))
        if ours is not None and ours.default is not Parameter.empty:
            return ours.default
        return parameter.default

    def _listed(self) -> list[str]:
        """Return the parameters, with their defaults."""
        parts = []
        star = "*more" if self.takes_more else "*"
        for number, each in enumerate(self.theirs):
            if each.kind is Parameter.KEYWORD_ONLY and star not in parts:
                parts.append(star)
            if each.kind in STARRED:
                parts.append(f"{'*' if each.kind is Parameter.VAR_POSITIONAL else '**'}{each.name}")
                star = parts[-1] if each.kind is Parameter.VAR_POSITIONAL else star
                continue
            default = self._default_of(each)
            named = "" if default is Parameter.empty else f"={self._default(each.name, default)}"
            parts.append(each.name + named)
            following = [other.kind for other in self.theirs[number + 1 : number + 2]]
            if each.kind is Parameter.POSITIONAL_ONLY and following != [Parameter.POSITIONAL_ONLY]:
                parts.append("/")
        last = [parts.pop()] if parts and parts[-1][:2] == "**" else []
        if star not in parts and (self.takes_more or self.extra):
            parts.append(star)
        return parts + [f"{name}={self._default(name, default)}" for name, default in self.extra.items()] + last

    def _fast(self) -> list[str]:
        """Return the call of the operator, if the operator accepts the given arguments."""
        passed = self._passed()
        if passed is None:
            return []
        first, used = self.theirs[0].name, set(passed.values())
        tests = ["not more"] if self.takes_more else []
        defaults = {each.name: self._default_of(each) for each in self.theirs} | self.extra
        for name, default in defaults.items():
            if name not in used and name not in SYNONYMS:
                tests.append(f"{name} is {self._default(name, default)}")
        if 0 in LISTS.get(self.public.function, ()):
            tests = [f"(type({first}) is list or type({first}) is tuple) and {first} and type({first}[0]) is Tensor",
                     *tests]  # fmt: skip
        elif self.public.creates:
            tests[:0] = [PLAINLY[self.public.name]] if self.public.name in PLAINLY else []
        else:
            tests.insert(0, f"type({first}) is Tensor")
        call = ", ".join(given if name is None else f"{name}={given}" for name, given in self._arguments(passed))
        attempt = ["try:", f"    return direct({call})", "except TypeError:", "    pass"]
        if not tests:
            return [f"    {line}" for line in attempt]
        return [f"    if {' and '.join(tests)}:", *(f"        {line}" for line in attempt)]

    def _passed(self) -> dict[str, str] | None:
        """Return the passed arguments by operator parameter, or None if there are others."""
        theirs_of = {ours: theirs for theirs, ours in self.ours_of.items()}
        passed = {}
        for name, each in self.ours.items():
            given = theirs_of.get(name, name if name in self.extra and name not in SYNONYMS else None)
            if given is not None:
                passed[name] = given
            elif each.default is Parameter.empty and each.kind not in STARRED:
                return None
        required = [each.name for each in self.theirs if each.default is Parameter.empty]
        return passed if set(required) <= set(passed.values()) else None

    def _arguments(self, passed: dict[str, str]) -> Iterator[tuple[str | None, str]]:
        """Yield the arguments of the call, with the names of those passed by keyword."""
        by_position = True
        for name, each in self.ours.items():
            by_position = by_position and name in passed and each.kind in POSITIONAL
            if name in passed:
                yield (None if by_position else name), passed[name]

    def _slow(self) -> list[str]:
        """Return the call for all other cases."""
        public = self.public
        defaults = {each.name: self._default_of(each) for each in self.theirs} | self.extra
        positional = [each for each in self.theirs if each.kind in POSITIONAL]
        only_positional = [each.name for each in positional if each.kind is Parameter.POSITIONAL_ONLY]
        required = [each.name for each in positional if each.default is Parameter.empty]
        beyond = self.extra.keys() - SYNONYMS.keys()
        names = [each.name for each in positional]

        def remaining(values: dict[str, Any], more: tuple[Any, ...]) -> Any:
            given = {name: value for name, value in values.items() if value is not defaults[name]}
            positions = [*_up_to_last(names, values, given), *more]
            others = {name: value for name, value in given.items() if name not in names}
            if public.own is not None and (more or not beyond.isdisjoint(given)):
                return public.own(*positions, **others)
            leading = _up_to_last(only_positional, values, given)
            args = [*leading, *(values[name] for name in required[len(leading) :])]
            named = {name: value for name, value in given.items() if name not in {*only_positional, *required}}
            return public.computed([*args, *more], named, (positions, others))

        self.names["remaining"] = remaining
        listed = ", ".join(f"{name!r}: {name}" for name in defaults if name not in SYNONYMS)
        return [f"    return remaining({{{listed}}}, {'more' if self.takes_more else '()'})"]


def _up_to_last(names: Sequence[str], values: dict[str, Any], given: dict[str, Any]) -> list[Any]:
    """Return the values of the names up to the last one that was given."""
    count = max((number + 1 for number, name in enumerate(names) if name in given), default=0)
    return [values[name] for name in names[:count]]


# -- the functions -----------------------------------------------------------------------------------------------------


def public(
    name: str,
    function: Callable[..., Any],
    *,
    general: Callable[..., Any] | None = None,
    own: Callable[..., Any] | None = None,
    creates: bool = False,
    way_out: str = "",
    module: str = "viewgrad.numpy",
    doc: str | None = None,
) -> Any:
    """Return the public counterpart of a NumPy function, which is the same object for all its names.

    Arguments:
        name: its name.
        function: the function of NumPy.
        general: a function that computes the same as NumPy's function, for any arguments; by default its `adapted`
            version.
        own: the library's function of that name, if any.
        creates: whether it creates a tensor, so that `own` is called for any first argument.
        way_out: the alternative for tensors with a history that no operator computes.
        module: the module that contains it, if there is no `own`.
        doc: its docstring; by default NumPy's.
    """
    if function in PUBLIC:
        return PUBLIC[function]
    if general is None:
        general = adapted(function, f"{module.removeprefix('viewgrad.')}.{name}", way_out)
    parts = Public(name, function, general, own, creates)
    bound = not hasattr(type(function), "__get__")
    code: Any = lazy_function(name, lambda: parts.source(bound), lambda: parts.parameters(bound))
    code.numpy = function
    code.__module__ = function.__module__ if own is None else "viewgrad"
    code.__doc__ = function.__doc__ if doc is None else doc
    made = PUBLIC[function] = types.MethodType(code, BUILT_IN) if bound else code
    if bound:
        setattr(BUILT_IN, name, made)  # pickled bound methods are looked up here
    return made


def public_of(function: Any) -> Any:
    """Return the public counterpart of a NumPy function or ufunc, or None if it has not been created."""
    if isinstance(function, np.ufunc):
        return UNIVERSAL.get(function)
    return PUBLIC.get(function) if isinstance(function, FROM_NUMPY) else None


def is_public(value: Any) -> bool:
    """Return whether a value is the public counterpart of a NumPy function or ufunc."""
    function = getattr(value, "numpy", None)
    return function is not None and public_of(function) is value


def meant_by(value: Any) -> Any:
    """Return the library's function that a public NumPy function calls for tensors; return other objects unchanged."""
    if not is_public(value):
        return value
    function = value.numpy
    adapter = UFUNCS.get((function, "__call__")) if isinstance(function, np.ufunc) else FUNCTIONS.get(function)
    return value if adapter is None else meaning(adapter)


class BuiltIn:
    """The object that counterparts of built-in functions are bound to, so that they never bind to other objects."""

    def __reduce__(self) -> str:
        return "BUILT_IN"

    def __repr__(self) -> str:
        return "viewgrad"


BUILT_IN: Final = BuiltIn()
