"""Calls of Python functions, which are inlined, and of library functions."""

from __future__ import annotations

import ast
import collections
import functools
import types
from collections.abc import Sequence
from typing import Any, Final

from ..ir import Var
from ..jumps import eliminate_jumps
from ..library import library_name
from ..objects import Getter, Guard, record_fields
from ..string_codes import encode_strings
from ..syntax_trees import nonlocals_of, stores_of, tree_of, users_function
from ..try_statements import eliminate_try_statements
from ..value_types import Arr, Num
from ..values import (
    CONFLICT,
    FunctionValue,
    HashedDict,
    HashedSet,
    IteratorValue,
    ListValue,
    Maybe,
    NotSupported,
    OrNone,
    Path,
    RecordValue,
    Ref,
    Reread,
    Static,
    TupleValue,
    as_expr,
    as_key,
    is_hashed,
    is_plain,
    items_in,
    kind_name,
)
from . import hash_table_code, numpy_code, python_code
from .attributes import attribute
from .generators import is_generator
from .library_calls import library
from .lists import array_of_list
from .loop_nests import NESTS
from .methods import method
from .numpy_replacements import in_numpy_code
from .scopes import Bound, ConstantFunction, Deferred, DictGet, Partial, Scope, identifier, is_updated, unboxed
from .selections import SelectionReader

# Functions that create an array from a list.
ARRAYS_OF_LISTS: Final = frozenset({"numpy.array", "numpy.asarray", "numpy.stack", "numpy.sum", "numpy.mean"})
LOOPS: Final = {
    "builtins.sum": python_code.sum_of, "builtins.max": python_code.max_of, "builtins.min": python_code.min_of,
    "builtins.any": python_code.any_of, "builtins.all": python_code.all_of, "math.fsum": python_code.fsum,
}  # fmt: skip
DEQUE: Final = "deque"  # the suffix of the source locations where deques are created
OF_DEQUES: Final = {"popleft": python_code.pop_left, "appendleft": python_code.append_left}
OF_LISTS: Final = {
    "extend": python_code.extend, "pop": python_code.pop_at, "insert": python_code.insert,
    "index": python_code.index_of, "count": python_code.count_of, "reverse": python_code.reverse,
    "remove": python_code.remove, "copy": python_code.copied,
}  # fmt: skip
UPDATES: Final = {
    "numpy.copyto": numpy_code.copyto, "numpy.fill_diagonal": numpy_code.fill_diagonal,
}  # fmt: skip
ITERABLES: Final = frozenset({"builtins.range", "builtins.zip", "builtins.enumerate", "builtins.reversed"})
ONE_SHOT: Final = frozenset({"builtins.map", "builtins.filter", "itertools.accumulate"})
OWN: Final = (python_code.__name__, numpy_code.__name__, hash_table_code.__name__)  # modules of inlined functions
# Functions of the keys of a dict, and functions for which the order of a set is irrelevant.
OF_KEYS: Final = frozenset({"builtins.list", "builtins.tuple", "builtins.sorted", "builtins.max", "builtins.min",
                            "builtins.sum"})
SETS: Final = OF_KEYS - {"builtins.list", "builtins.tuple"}
DEEP: Final = 24  # the maximum depth of nested calls


class CallReader(SelectionReader):
    """Reads calls."""

    def __init__(self, static: frozenset[str] = frozenset(), known: dict[Any, Any] | None = None) -> None:
        super().__init__(static, known)
        self.depth = 0  # the depth of nested calls

    def of_Call(self, scope: Scope, node: ast.Call) -> Any:
        """Read a call."""
        base: Any = None
        if isinstance(node.func, ast.Attribute):
            base = self.value(scope, node.func.value)
            if isinstance(base, Static):
                function = self.attribute_value(base, node.func.attr)
            elif isinstance(base, RecordValue) and not is_hashed(base):
                function = self.member(base, node.func.attr, node)
            else:
                function = None
        else:
            function = self.value(scope, node.func)
        name = library_name(function.value) if isinstance(function, Static) else None
        if name == "builtins.isinstance":
            return self.is_instance(scope, node)
        is_starred = any(isinstance(arg, ast.Starred) for arg in node.args)
        if name in NESTS or (name in ITERABLES and len(node.keywords) < 2 and not is_starred):
            found = self.items_of(scope, node, name in NESTS)
            return found if name == "builtins.range" else IteratorValue(found)
        start = len(self.out.buffer)
        args: list[Any] = []
        marks: list[int] = []
        for arg in node.args:
            if isinstance(arg, ast.Starred):
                inner = items_in(self.value(scope, arg.value))
                if not isinstance(inner, TupleValue):
                    raise self.out.refused("starred arguments of unknown number are not supported", node)
                args += inner.items
            else:
                args.append(self.argument(scope, arg))
            marks += [len(self.out.buffer)] * (len(args) - len(marks))
        keywords: dict[str, Any] = {}
        for keyword in node.keywords:
            value = self.value(scope, keyword.value)
            if keyword.arg is not None:
                keywords[keyword.arg] = value
                marks.append(len(self.out.buffer))
            elif isinstance(value, RecordValue) and value.cls is dict:
                keywords |= value.fields
                marks += [len(self.out.buffer)] * (len(args) + len(keywords) - len(marks))
            else:
                raise self.out.refused("keywords that are not constant are not supported", node)
        names = list(keywords)
        base, *values = self.settled([base, *args, *keywords.values()], [start, *marks])
        if name is None and function is not None and any(isinstance(each, IteratorValue) for each in values):
            raise self.out.refused("passing an iterator to a function is not supported", node)
        values = list(map(items_in, values))
        args, keywords = values[: len(args)], dict(zip(names, values[len(args) :]))
        if function is None:
            assert isinstance(node.func, ast.Attribute)
            return self.call_method(scope, base, node.func.attr, list(map(self.of_deferred, args)), keywords, node)
        found = self.called(scope, function, args, keywords, node)
        return IteratorValue(found) if name in ONE_SHOT else found

    def call_method(
        self, scope: Scope, base: Any, name: str, args: list[Any], keywords: dict[str, Any], node: ast.Call
    ) -> Any:
        """Return the result of a method of a number, an array or a container."""
        if isinstance(base, (ListValue, Ref)):
            return self.list_method(scope, base, name, args, keywords, node)
        if is_hashed(base) and not keywords:
            return self.hashed_method(base, name, list(map(self.copied, args)), node)
        if isinstance(base, TupleValue) and base.cls is set:
            raise Reread(("hashed", base.site), True)
        return method(self.out, base, name, args, keywords)

    def list_method(
        self, scope: Scope, base: ListValue | Ref, name: str, args: list[Any], keywords: dict[str, Any], node: ast.Call
    ) -> Any:
        """Return the result of a method of a list of unknown length, or of a deque."""
        if name == "sort" and not args:
            return self.call_own(python_code.assigned, [base, self.sorted_items(scope, [base], keywords, node)])
        sites = base.of.sites if isinstance(base, Ref) else (base.site,)
        own = OF_LISTS.get(name)
        if own is None and all(site[-1] == DEQUE for site in sites):
            own = OF_DEQUES.get(name)
        if own is not None and not keywords and len(args) == own.__code__.co_argcount - 1:
            return self.call_own(own, [base, *args])
        return method(self.out, base, name, args, keywords)

    def library_called(self, scope: Scope, node: ast.Call) -> str | None:
        """Return the name of the library function that a call refers to, without reading the call; None for others."""
        function = node.func
        if not isinstance(function, ast.Name) and not (
            isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name)
        ):
            return None
        owner = self.value(scope, function if isinstance(function, ast.Name) else function.value)
        if not isinstance(owner, Static):
            return None
        if isinstance(function, ast.Attribute):
            owner = self.attribute_value(owner, function.attr) if isinstance(owner.value, types.ModuleType) else None
        return library_name(owner.value) if isinstance(owner, Static) else None

    def argument(self, scope: Scope, node: ast.expr) -> Any:
        """Read an argument of a call."""
        if isinstance(node, (ast.GeneratorExp, ast.ListComp)) and len(node.generators) == 1:
            (generator,) = node.generators
            is_nest = isinstance(generator.iter, ast.Call) and self.library_called(scope, generator.iter) in NESTS
            if not generator.ifs and not is_nest and not isinstance(self.sequence(scope, generator.iter), TupleValue):
                return Deferred(node, scope)
        return self.value(scope, node)

    def of_deferred(self, value: Any) -> Any:
        """Read an argument; a comprehension becomes a list."""
        return self.by_loop(value.scope, value.node) if isinstance(value, Deferred) else value

    def call_own(self, function: Any, args: list[Any]) -> Any:
        """Inline a function of `python_code`."""
        return self.call_python(function, Path(function, False), args, {}, own=True)

    def called(self, scope: Scope, function: Any, args: list[Any], keywords: dict[str, Any], node: Any) -> Any:
        """Return the result of a call."""
        if isinstance(function, ConstantFunction):
            return function.value
        if isinstance(function, DictGet):
            key, otherwise = [*args, Static(None)][:2]
            key = as_key(key)
            if not isinstance(key, Static) or not is_plain(key.value):
                raise self.with_computed_keys(function.owner, key, node)
            return function.owner.fields.get(key.value, otherwise)
        if isinstance(function, Partial):
            return self.called(scope, function.function, [*function.args, *args], function.keywords | keywords, node)
        if isinstance(function, Bound):
            path = Path(function.function, False)
            return self.call_python(function.function, path, [function.owner, *args], keywords)
        if isinstance(function, FunctionValue):
            return self.call_nested(function, args, keywords)
        if not isinstance(function, Static):
            raise self.out.refused(f"calling {kind_name(function)} is not supported", node)
        value = function.value
        name = library_name(value)
        if name is not None:
            return self.call_library(scope, name, args, keywords, node)
        args = [self.of_deferred(arg) for arg in args]
        if isinstance(value, type):
            return self.made(scope, value, args, keywords, node)
        return self.call_python(value, function.path or Path(value, False), args, keywords)

    def call_library(
        self, scope: Scope, name: str, args: list[Any], keywords: dict[str, Any], node: ast.Call
    ) -> Any:
        """Return the result of a call of a library function."""
        if name == "builtins.sum" and args and isinstance(args[0], Deferred):
            return self.summed(args[0], args[1] if len(args) > 1 else keywords.get("start", Static(0)))
        if name in ARRAYS_OF_LISTS and args and isinstance(args[0], Deferred) and self.is_of_floats(args[0]):
            args = [self.listed(args[0]), *args[1:]]
            if name == "numpy.stack" and len(args) == 1 and not keywords:
                return args[0]
        args = [self.of_deferred(arg) for arg in args]
        site = (scope.file, node.lineno, node.col_offset)
        table = self.made_by_hash(name, args, site, node) if not keywords else None
        if table is not None:
            return table
        if name in OF_KEYS and args and is_hashed(args[0]) and (name in SETS or args[0].cls is not HashedSet):
            args = [args[0].fields["keys"], *args[1:]]
        if name in ("builtins.map", "builtins.filter") and len(args) == 2 and not keywords:
            return self.of_function(scope, args[0], args[1], node, name.endswith("filter"))
        if name == "math.isclose":
            return self.call_python(python_code.is_close, Path(python_code.is_close, False), args, keywords)
        found = self.selection(scope, name, args, keywords, node)
        if found is not None:
            return found
        if name in ("builtins.list", "builtins.tuple") and len(args) == 1 and isinstance(args[0], TupleValue):
            made = TupleValue(args[0].items, list, site) if name == "builtins.list" else TupleValue(args[0].items)
            return self.growing(made) if name == "builtins.list" and self.grows(site) else made
        own = self.in_python(name, args) if not keywords else None
        if own is not None:
            return self.call_own(own, args)
        given = in_numpy_code(name, args, keywords)
        if given is not None:
            return self.call_own(*given)
        if name in ("builtins.list", "builtins.tuple") and len(args) == 1 and not isinstance(
            args[0], (TupleValue, RecordValue)
        ):
            return self.list_of(scope, args[0], node)
        if name.startswith("numpy."):
            args = [array_of_list(self.out, arg) if isinstance(arg, (ListValue, Ref)) else arg for arg in args]
        if any(isinstance(arg, FunctionValue) for arg in args):
            raise self.out.refused(f"passing a function to {name.rpartition('.')[2]} is not supported", node)
        return library(self.out, name, args, keywords)

    def made_by_hash(self, name: str, args: list[Any], site: Any, node: ast.Call) -> RecordValue | None:
        """Return the result of `set` of an iterable, or of `dict` without arguments; None for other calls."""
        if name == "builtins.set" and len(args) < 2:
            return self.set_from(args[0] if args else TupleValue(()), site, node)
        if name == "builtins.dict" and not args:
            return self.hashed(HashedDict, site) if self.is_hashed_at(site) else self.record({}, dict, site)
        return None

    def made(self, scope: Scope, value: type, args: list[Any], keywords: dict[str, Any], node: ast.Call) -> Any:
        """Return an instance of a class."""
        if value is collections.deque and not keywords and len(args) < 2:
            return self.deque(scope, args, node)
        site = (scope.file, node.lineno, node.col_offset)
        if value in (collections.defaultdict, collections.Counter) and not keywords:
            if len(args) != (value is collections.defaultdict):
                raise self.out.refused(f"a {value.__name__} with these arguments is not supported", node)
            return self.default_dict(args[0], site, node) if args else self.counter(site)
        if value is functools.partial:
            return Partial(args[0], [self.given(arg) for arg in args[1:]], keywords)
        fields = record_fields(value)
        if fields is not None and not hasattr(value, "__post_init__") and not hasattr(value, "__attrs_post_init__"):
            by_keyword = {key: self.held(each) for key, each in keywords.items()}
            given = dict(zip(fields, map(self.held, args))) | by_keyword
            return self.record(self.with_defaults(given, fields, value, site), value, site)
        if hasattr(value, "_fields"):
            given = dict(zip(value._fields, args)) | keywords
            if list(given) == list(value._fields):
                return TupleValue(tuple(map(self.held, given.values())), value)
        if is_plain_class(value):
            return self.instance(value, site, args, keywords)
        raise self.out.refused(f"creating an instance of {value.__name__} is not supported", node)

    def deque(self, scope: Scope, args: list[Any], node: ast.Call) -> Any:
        """Read a `collections.deque` without a maximum length, as a list."""
        given = args[0] if args else TupleValue(())
        if not isinstance(given, TupleValue):
            return self.list_of(scope, given, node)
        found = TupleValue(given.items, list, (scope.file, node.lineno, node.col_offset, DEQUE))
        return self.growing(found) if self.grows(found.site) else found

    def with_defaults(self, given: dict[str, Any], fields: Sequence[str], cls: type, site: Any) -> dict[str, Any]:
        """Return the fields of a record created at a location, with defaults for missing ones."""
        found = {}
        for name in fields:
            if name in given:
                found[name] = given[name]
            elif name in vars(cls):  # a default that is a plain value
                found[name] = self.attribute_of(Static(cls), name)
            else:
                factory = getattr(cls.__dict__.get("__dataclass_fields__", {}).get(name), "default_factory", None)
                if factory is list:
                    made = TupleValue((), list, (*site, name))
                    found[name] = self.growing(made) if self.grows(made.site) else made
                elif factory is dict:
                    found[name] = self.record({}, dict, (*site, name))
                else:
                    raise self.out.refused(f"omitting {name} of a {cls.__name__} is not supported")
        return found

    def instance(self, cls: type, site: Any, args: list[Any], keywords: dict[str, Any]) -> RecordValue:
        """Return an object of a plain class, created by its `__init__`."""
        self.known_sites.setdefault(site, {})
        found = self.record({}, cls, site)
        self.call_python(vars(cls)["__init__"], Path(cls, False).to("attr", "__init__"), [found, *args], keywords)
        return found

    def is_of_floats(self, comprehension: Deferred) -> bool:
        """Return whether the items of a comprehension are floats."""
        before, numbers = self.out.buffer, dict(self.out.numbers)
        self.out.buffer = []
        try:
            self.listed(comprehension)
            return True
        except NotSupported:
            return False
        finally:
            self.out.buffer, self.out.numbers = before, numbers

    def in_python(self, name: str, args: list[Any]) -> Any:
        """Return the function of `python_code` that implements a library call, or None if there is none."""
        if name in UPDATES:
            return UPDATES[name] if isinstance(as_expr(args[1]), Var) or not isinstance(args[1], TupleValue) else None
        rule = LOOPS.get(name)
        if rule is None or len(args) not in (1, 2) or (len(args) == 2 and name != "builtins.sum"):
            return None
        if isinstance(args[0], (ListValue, Ref)):
            return rule
        expr = as_expr(args[0])
        is_vector = expr is not None and isinstance(expr.kind, Arr) and expr.kind.ndim == 1
        return rule if is_vector and name != "builtins.sum" else None

    def member(self, base: RecordValue, name: str, node: Any) -> Any:
        """Return a method of a record, or a function stored in one of its fields."""
        if base.cls is dict:
            method = {"keys": [Static(key) for key in base.fields], "values": list(base.fields.values()),
                      "items": [TupleValue((Static(key), value)) for key, value in base.fields.items()]}.get(name)
            if name == "get":
                return DictGet(base)
            if method is None and name in ("setdefault", "pop", "clear"):
                raise self.with_computed_keys(base, None, node)
            if method is None:
                raise self.out.refused(f"dict.{name} is not supported", node)
            return ConstantFunction(TupleValue(tuple(method)))
        if name in base.fields:
            return base.fields[name]
        member = next((vars(each)[name] for each in base.cls.__mro__ if name in vars(each)), None)
        if isinstance(member, staticmethod):
            self.guard(member, Path(base.cls, False).to("attr", "__dict__").to("key", name))
            return Static(member.__func__)
        if not isinstance(member, types.FunctionType):
            raise self.out.refused(f"{base.cls.__name__} has no method {name}", node)
        self.guard(member, Path(base.cls, False).to("attr", name))
        return Bound(member, base)

    def is_instance(self, scope: Scope, node: ast.Call) -> Any:
        """Evaluate `isinstance` for known classes."""
        value = self.value(scope, node.args[0])
        kind = self.value(scope, node.args[1])
        classes = kind.items if isinstance(kind, TupleValue) else (kind,)
        if not all(isinstance(each, Static) and isinstance(each.value, type) for each in classes):
            raise self.out.refused("isinstance() with a class that is not constant is not supported", node)
        given = tuple([each.value for each in classes])
        if isinstance(value, Static):
            return Static(isinstance(value.value, given))
        if isinstance(value, (TupleValue, RecordValue)):
            return Static(issubclass(value.cls, given))
        raise self.out.refused("isinstance() of a number or an array is not supported", node)

    def call_python(
        self, function: Any, path: Path, args: Sequence[Any], keywords: dict[str, Any], names: bool = False,
        own: bool = False,
    ) -> Any:
        """Inline a function.

        Arguments:
            function: a function, a method or a partial function.
            path: its access path.
            args, keywords: the arguments.
            names: whether its variables keep their names.
            own: whether it is a function of `python_code`.
        """
        args, keywords = list(args), dict(keywords)
        while True:
            if isinstance(function, types.MethodType):
                owner = function.__self__
                args.insert(0, self.object(owner, Path(function, False).to("attr", "__self__"), "self")
                            if not isinstance(owner, type) else Static(owner))
                function = function.__func__
            elif isinstance(function, functools.partial):
                root = Path(function, False)
                args[:0] = [self.object(arg, root.to("attr", "args").to("item", i), f"given{i}")
                            for i, arg in enumerate(function.args)]
                given = {key: self.object(value, root.to("attr", "keywords").to("key", key), key)
                         for key, value in function.keywords.items()}
                keywords = given | keywords
                function = function.func
            elif type(function).__name__ == "Compiled" and hasattr(function, "function"):
                function = function.function
            elif (call := _call_of(function)) is not None:
                self.guard(call, Path(type(function), False).to("attr", "__call__"))
                function = types.MethodType(call, function)
            elif users_function(function) is not function:
                function = users_function(function)
            else:
                break
        if not isinstance(function, types.FunctionType):
            raise self.out.refused(f"{getattr(function, '__qualname__', function)} is not a Python function")
        module = str(function.__module__).partition(".")[0]
        own = own or function.__module__ in OWN
        if module in ("viewgrad", "numpy", "scipy") and not own:
            raise self.out.refused(f"{module}'s {function.__qualname__} is not supported")
        if function.__code__.co_flags & 0x2A0:  # generators and coroutines
            raise self.out.refused(f"{function.__qualname__} is a generator")
        if hasattr(function, "__wrapped__"):
            raise self.out.refused(f"{function.__qualname__} is wrapped by a decorator")
        node = tree_of(function)
        self.guards.setdefault(("code", id(function)), Guard(
            Path(function, False).to("attr", "__code__"), function.__code__, "is"))
        self.paths.append(function)
        defaults = [self.object(value, Path(function, False).to("attr", "__defaults__").to("item", i), f"default{i}")
                    for i, value in enumerate(function.__defaults__ or ())]
        kw_defaults = {key: self.object(value, Path(function, False).to("attr", "__kwdefaults__").to("key", key), key)
                       for key, value in (function.__kwdefaults__ or {}).items()}
        cells = {name: i for i, name in enumerate(function.__code__.co_freevars)}
        prefix = "" if names else self.out.fresh(f"{identifier(function.__name__)}") + "__"
        scope = Scope(None, stores_of(node), prefix, function.__globals__, Path(function, False), cells,
                      function.__code__.co_filename)
        return self.inlined(node, scope, args, keywords, defaults, kw_defaults)

    def call_nested(self, fn: FunctionValue, args: Sequence[Any], keywords: dict[str, Any]) -> Any:
        """Inline a nested function or a lambda."""
        outer = fn.scope
        name = self.out.fresh(identifier(getattr(fn.node, "name", "lambda_")))
        scope = Scope(outer, stores_of(fn.node), f"{name}__", outer.variables, None, {}, outer.file)
        kw_only = [arg.arg for arg in fn.node.args.kwonlyargs]
        kw_defaults = {key: value for key, value in zip(kw_only, fn.kw_defaults) if value is not None}
        return self.inlined(fn.node, scope, list(args), dict(keywords), list(fn.defaults), kw_defaults)

    def inlined(
        self, node: ast.FunctionDef | ast.Lambda, scope: Scope, args: list[Any], keywords: dict[str, Any],
        defaults: Sequence[Any], kw_defaults: dict[str, Any],
    ) -> Any:
        """Return the result of a function that is inlined."""
        if self.depth >= DEEP:
            raise self.out.refused("calls are nested too deeply, as in a recursion", node)
        before = self.out.line, self.out.file
        self.depth += 1
        self.out.file = scope.file
        given = self.parameters(node, args, keywords, defaults, kw_defaults)
        if not isinstance(node, ast.Lambda):
            for name in nonlocals_of(node.body, nested=True):
                scope.stores[name] = scope.stores.get(name, 0) + 2
        for name, value in given.items():
            if name in scope.stores:
                scope.stores[name] += 1
                if isinstance(value, Var) and isinstance(value.kind, Num) and value.kind.boxed:
                    if is_updated(node, name):
                        raise self.out.refused("writing to a 0-d array here is not supported", node)
                    value = unboxed(value)
                self.bind(scope, name, value)
            else:
                scope.env[name] = self.given(value)
        result = self.value(scope, node.body) if isinstance(node, ast.Lambda) else self.returned(node, scope, given)
        self.depth -= 1
        self.out.line, self.out.file = before
        return result

    def parameters(
        self, node: ast.FunctionDef | ast.Lambda, args: list[Any], keywords: dict[str, Any], defaults: Sequence[Any],
        kw_defaults: dict[str, Any],
    ) -> dict[str, Any]:
        """Return the arguments of a call by parameter name."""
        spec = node.args
        positional = [arg.arg for arg in (*spec.posonlyargs, *spec.args)]
        given = dict(zip(positional, args))
        if len(args) > len(positional):
            if spec.vararg is None:
                raise self.out.refused("too many arguments")
            given[spec.vararg.arg] = TupleValue(tuple(args[len(positional) :]))
        elif spec.vararg is not None:
            given[spec.vararg.arg] = TupleValue(())
        rest = {}
        for key, value in keywords.items():
            if key in given:
                raise self.out.refused(f"argument {key} has two values")
            if key in positional or any(key == arg.arg for arg in spec.kwonlyargs):
                given[key] = value
            else:
                rest[key] = value
        if spec.kwarg is not None:
            given[spec.kwarg.arg] = RecordValue(rest)
        elif rest:
            raise self.out.refused(f"unexpected argument {next(iter(rest))}")
        for name, value in zip(positional[len(positional) - len(defaults) :], defaults):
            given.setdefault(name, value)
        for name, value in kw_defaults.items():
            given.setdefault(name, value)
        missing = [name for name in (*positional, *(arg.arg for arg in spec.kwonlyargs)) if name not in given]
        if missing:
            raise self.out.refused(f"argument {missing[0]} is missing")
        return given

    def returned(self, node: ast.FunctionDef, scope: Scope, given: dict[str, Any]) -> Any:
        """Read the body of a function and return its result."""
        if is_generator(node):
            raise self.out.refused("generators are not supported", node)
        try:
            body = encode_strings(node.body, given)
            body = eliminate_jumps(eliminate_try_statements(body, functools.partial(self.error_of, scope)))
        except NotImplementedError as error:
            raise self.out.refused(f"{error} is not supported", node) from None
        scope.stores = stores_of(body)
        for name in given:
            if name in scope.stores:
                scope.stores[name] += 1
        for name in nonlocals_of(node.body, nested=True):
            scope.stores[name] = scope.stores.get(name, 0) + 2
            self.shared.add(scope.prefix + name)
        scope.nonlocals = nonlocals_of(node.body, nested=False)
        for name in scope.nonlocals:
            scope.stores.pop(name, None)
        scope.body = body
        self.block(scope, body)
        result = scope.env.get("_result", Static(None))
        if isinstance(result, OrNone):
            raise self.out.refused("returning None in some branches and a value in others is not supported", node)
        if isinstance(result, Maybe):
            result = result.value
        if result is CONFLICT:
            raise self.out.refused("it returns values of several types", node)
        return result

    def error_of(self, scope: Scope, node: ast.Name) -> Any:
        """Return the exception class that a name refers to in a function, or None for others."""
        if node.id in scope.stores or node.id in scope.env:
            return None
        try:
            found = self.free(scope, node.id, node)
        except NotSupported:
            return None
        is_error = isinstance(found, Static) and isinstance(found.value, type) and issubclass(
            found.value, BaseException)
        return found.value if is_error else None

    def of_Attribute(self, scope: Scope, node: ast.Attribute) -> Any:
        """Read an attribute."""
        base = self.value(scope, node.value)
        if isinstance(base, Static):
            return self.attribute_value(base, node.attr)
        if isinstance(base, RecordValue):
            if node.attr in base.fields and base.cls is not dict:
                return base.fields[node.attr]
            member = next((vars(each)[node.attr] for each in base.cls.__mro__ if node.attr in vars(each)), None)
            if isinstance(member, property):
                self.guard(member, Path(base.cls, False).to("attr", node.attr))
                return self.call_python(member.fget, Path(member.fget, False), [base], {})
            if isinstance(member, types.FunctionType):
                return Partial(self.member(base, node.attr, node), [], {})
            if member is not None and base.cls is not dict:  # a member of the class
                return self.attribute_of(Static(base.cls), node.attr)
            raise self.out.refused(f"attribute {node.attr} of a {base.cls.__name__} is not supported", node)
        if isinstance(base, TupleValue) and hasattr(base.cls, "_fields") and node.attr in base.cls._fields:
            return base.items[base.cls._fields.index(node.attr)]
        return attribute(self.out, base, node.attr, node)

    def attribute_value(self, base: Static, name: str) -> Any:
        """Return an attribute of a known object, which may be a property."""
        found = self.attribute_of(base, name)
        if type(found) is Getter:
            return self.call_python(found.function, Path(found.function, False), [base], {})
        return found


def _call_of(value: Any) -> types.FunctionType | None:
    """Return the function that runs when an object of a user's class is called."""
    kind = type(value)
    if isinstance(value, type) or kind.__module__.partition(".")[0] in ("builtins", "viewgrad", "numpy", "scipy"):
        return None
    found = next((vars(each)["__call__"] for each in kind.__mro__ if "__call__" in vars(each)), None)
    return found if isinstance(found, types.FunctionType) else None


def is_plain_class(cls: type) -> bool:
    """Return whether objects of a class are created by its `__init__` and have only attributes of their own."""
    made: Any = cls
    plain: Any = object
    makes = vars(cls).get("__init__")
    if type(cls) is not type or cls.__bases__ != (object,) or not isinstance(makes, types.FunctionType):
        return False
    return made.__new__ is plain.__new__ and made.__setattr__ is plain.__setattr__ and not hasattr(cls, "__getattr__")
