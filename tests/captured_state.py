"""Kinds of captured state: for each, code that creates it, a number that depends on it, and a change of it.

Each runs in a namespace of its own, in which `state` is a list that is shared by the three.
"""

from __future__ import annotations

import decimal
import functools
import itertools
import linecache
import logging
import os
import sys
import tempfile
import time
import warnings

import numpy as np
from captured_objects import OTHERS, OVERLOOKED

MODULE = "import types\nm = types.ModuleType({name!r})\nm.__file__ = '/home/user/{name}.py'\n"
MODULE += "exec(compile({source!r}, m.__file__, 'exec'), m.__dict__)\n"


def of_module(name, source, number, change):
    """A kind of state in a user's module."""
    return MODULE.format(name=name, source=source), number, change


CLASS = "class C:\n    factor = 2.0\n    def scaled(self): return self.factor\n"
KINDS = {
    # modules and classes
    "module like profile": of_module("profile", "factor = 2.0", "m.factor", "m.factor = 3.0"),
    "function of a module like trace": of_module(
        "trace", "factor = 2.0\ndef scaled(): return factor", "m.scaled()", "m.factor = 3.0"
    ),
    "class of a module like calendar": of_module("calendar", CLASS, "m.C().scaled()", "m.C.factor = 3.0"),
    "replaced function of a module": of_module(
        "statistics", "def scaled(): return 2.0", "m.scaled()", "m.scaled = lambda: 3.0"
    ),
    "module with __getattr__": of_module(
        "lazy", "found = {'factor': 2.0}\ndef __getattr__(name): return found[name]", "m.factor",
        "m.found['factor'] = 3.0",
    ),
    "attribute that a module gets later": of_module("late", "", "getattr(m, 'factor', 2.0)", "m.factor = 3.0"),
    "property of a module": (
        "import types\nclass M(types.ModuleType):\n    factor = property(lambda self: self.kept)\n"
        "m = M('special')\nm.kept = 2.0", "m.factor", "m.kept = 3.0",
    ),
    "class without __module__": (
        f"n = {{}}\nexec({CLASS!r}, n)\nc = n['C']()", "c.scaled()", "n['C'].factor = 3.0"
    ),
    "instance of a class without __module__": (
        f"n = {{}}\nexec({CLASS!r}, n)\nc = n['C']()\nc.factor = 2.0", "c.scaled()", "c.factor = 3.0"
    ),
    "module in sys.modules": (
        "import sys, types\none, other = types.ModuleType('swapped'), types.ModuleType('swapped')\n"
        "one.factor, other.factor = 2.0, 3.0\nsys.modules['swapped'] = one\n"
        "def factor():\n    import swapped\n    return swapped.factor", "factor()", "sys.modules['swapped'] = other",
    ),
    "attribute of a class": (CLASS + "c = C()", "c.scaled()", "C.factor = 3.0"),
    "attribute of an instance": (CLASS + "c = C()", "c.scaled()", "c.factor = 3.0"),
    "class of an instance": (
        "class A:\n    def f(self): return 2.0\nclass B:\n    def f(self): return 3.0\na = A()", "a.f()",
        "a.__class__ = B",
    ),
    "bases of a class": (
        "class A:\n    def f(self): return 2.0\nclass B:\n    def f(self): return 3.0\nclass C(A): pass\nc = C()",
        "c.f()", "C.__bases__ = (B,)",
    ),
    "metaclass": (
        "class M(type):\n    factor = 2.0\n    def __getattr__(cls, name): return M.factor\n"
        "class C(metaclass=M): pass", "C.anything", "M.factor = 3.0",
    ),
    "descriptor": (
        "class D:\n    factor = 2.0\n    def __get__(self, *of): return D.factor\nclass C: d = D()\nc = C()", "c.d",
        "D.factor = 3.0",
    ),
    "property": ("class C: f = property(lambda self: 2.0)\nc = C()", "c.f", "C.f = property(lambda self: 3.0)"),
    "static method": ("class C: f = staticmethod(lambda: 2.0)", "C.f()", "C.f = staticmethod(lambda: 3.0)"),
    "__getattribute__": (
        "k = [2.0]\nclass C:\n    def __getattribute__(self, name): return k[0]\nc = C()", "c.anything", "k[0] = 3.0"
    ),
    "__getitem__": (
        "class C:\n    def __getitem__(self, i): return 2.0\nc = C()", "c[0]", "C.__getitem__ = lambda self, i: 3.0"
    ),
    "__call__": ("class C:\n    def __call__(self): return 2.0\nc = C()", "c()", "C.__call__ = lambda self: 3.0"),
    "__format__": ("k = [2.0]\nclass C:\n    def __format__(self, s): return str(k[0])\nc = C()", "float(f'{c}')",
                   "k[0] = 3.0"),
    "__slots__": ("class C: __slots__ = ('f',)\nc = C()\nc.f = 2.0", "c.f", "c.f = 3.0"),
    "dataclass": (
        "import dataclasses\nc = dataclasses.make_dataclass('C', ['f'])(2.0)", "c.f", "c.f = 3.0"
    ),
    "default of a dataclass": (
        "import dataclasses\n@dataclasses.dataclass\nclass C:\n    f: float = 2.0", "C().f",
        "C.__init__.__defaults__ = (3.0,)",
    ),
    "cached property": (
        "import functools\nclass C:\n    @functools.cached_property\n    def f(self): return 2.0\nc = C()", "c.f",
        "c.f = 3.0",
    ),
    "partial method": (
        "import functools\nk = [2.0]\nclass C:\n    def f(self, a): return k[0] * a\n"
        "    g = functools.partialmethod(f, 1.0)\nc = C()", "c.g()", "k[0] = 3.0",
    ),
    "enum member": ("import enum\nclass E(enum.Enum): A = 1\nE.A.f = 2.0", "E.A.f", "E.A.f = 3.0"),
    "text of a class": ("class C: '2'", "float(C.__doc__)", "C.__doc__ = '3'"),
    # attributes of classes and modules of libraries
    "attribute of Fraction": ("import fractions\nfractions.Fraction.f_ = 2.0\nq = fractions.Fraction(1, 2)", "q.f_",
                              "fractions.Fraction.f_ = 3.0"),
    "attribute of Tensor": ("import viewgrad as vg\nvg.Tensor.f_ = 2.0", "vg.ones(1).f_", "vg.Tensor.f_ = 3.0"),
    "attribute of Polynomial": ("import numpy as np\nP = np.polynomial.Polynomial\nP.f_ = 2.0", "P.f_", "P.f_ = 3.0"),
    "attribute of numpy": ("import numpy as np\nnp.f_ = 2.0", "np.f_", "np.f_ = 3.0"),
    "attribute of math": ("import math\nmath.f_ = 2.0", "math.f_", "math.f_ = 3.0"),
    "attribute of viewgrad": ("import viewgrad as vg\nvg.f_ = 2.0", "vg.f_", "vg.f_ = 3.0"),
    "function put into numpy": ("import numpy as np\nnp.g_ = lambda: 2.0", "np.g_()", "np.g_ = lambda: 3.0"),
    "attribute of a function of numpy": ("import numpy as np\nnp.mean.f_ = 2.0", "np.mean.f_", "np.mean.f_ = 3.0"),
    "attribute of builtins": ("import builtins\nbuiltins.f_ = 2.0", "f_", "builtins.f_ = 3.0"),
    "variable that hides a builtin": ("", "float(abs(-2))", "abs = lambda number: 3.0"),
    # subclasses of builtins
    "attribute of a str": ("class S(str): pass\ns = S('a')\ns.f = 2.0", "s.f", "s.f = 3.0"),
    "attribute of a class of str": ("class S(str): f = 2.0\ns = S('a')", "s.f", "S.f = 3.0"),
    "attribute of a float": ("class S(float): pass\ns = S(1)\ns.f = 2.0", "s.f", "s.f = 3.0"),
    "attribute of a tuple": ("class S(tuple): pass\ns = S((1,))\ns.f = 2.0", "s.f", "s.f = 3.0"),
    "attribute of bytes": ("class S(bytes): pass\ns = S(b'a')\ns.f = 2.0", "s.f", "s.f = 3.0"),
    "method of an int": (
        "k = [2.0]\nclass S(int):\n    def f(self): return k[0]\ns = S(1)", "s.f()", "k[0] = 3.0"
    ),
    # functions
    "default": ("def g(f=2.0): return f", "g()", "g.__defaults__ = (3.0,)"),
    "code of a function in a dict": (
        "def g(): return 2.0\ndef h(): return 3.0\nd = {'g': g}", "d['g']()", "g.__code__ = h.__code__"
    ),
    "default of a function in a tuple": ("def g(f=2.0): return f\nt = (g,)", "t[0]()", "g.__defaults__ = (3.0,)"),
    "default of a static method": (
        "class C:\n    @staticmethod\n    def g(f=2.0): return f\nc = C()", "c.g()", "C.g.__defaults__ = (3.0,)"
    ),
    "code of a wrapped function": (
        "import functools\ndef h(): return 3.0\ndef wrapped(g):\n    @functools.wraps(g)\n"
        "    def call(): return g()\n    return call\n@wrapped\ndef g(): return 2.0",
        "g()", "g.__wrapped__.__code__ = h.__code__",
    ),
    "arguments of a partial": (
        "import functools\ndef h(f): return f\ng = functools.partial(h, 2.0)", "g()",
        "g.__setstate__((h, (3.0,), {}, {}))",
    ),
    "keywords of a partial": (
        "import functools\ndef h(f): return f\ng = functools.partial(h, f=2.0)", "g()", "g.keywords['f'] = 3.0"
    ),
    "module by its name": (
        "import importlib, sys, types\nm = types.ModuleType('by_its_name')\nm.factor = 2.0\n"
        "sys.modules['by_its_name'] = m", "importlib.import_module('by_its_name').factor", "m.factor = 3.0",
    ),
    "keyword default": ("def g(*, f=2.0): return f", "g()", "g.__kwdefaults__['f'] = 3.0"),
    "code": ("def g(): return 2.0", "g()", "g.__code__ = (lambda: 3.0).__code__"),
    "attribute of a function": ("def g(): pass\ng.f = 2.0", "g.f", "g.f = 3.0"),
    "name of a function": ("def g(): pass\ng.__name__ = '2'", "float(g.__name__)", "g.__name__ = '3'"),
    "text of a function": ("def g(): '2'", "float(g.__doc__)", "g.__doc__ = '3'"),
    "annotations of a function": (
        "def g(): pass\ng.__annotations__['f'] = 2.0", "g.__annotations__['f']", "g.__annotations__['f'] = 3.0"
    ),
    "cell": ("def make(f):\n    def get(): return f\n    return get\ng = make(2.0)", "g()",
             "g.__closure__[0].cell_contents = 3.0"),
    "cached function": (
        "import functools\nk = [2.0]\n@functools.lru_cache\ndef g(): return k[0]", "g()", "k[0] = 3.0; g.cache_clear()"
    ),
    "generic function": (
        "import functools\n@functools.singledispatch\ndef g(x): return 2.0", "g(1)", "g.register(int, lambda x: 3.0)"
    ),
    "function of map": ("k = [2.0]\ndef g(i): return k[0]", "sum(map(g, [1]))", "k[0] = 3.0"),
    "vectorized function": ("import numpy as np\nk = [2.0]\nv = np.vectorize(lambda q: k[0])", "float(v(1.0))",
                            "k[0] = 3.0"),
    "generator function": ("k = [2.0]\ndef g():\n    yield k[0]", "next(g())", "k[0] = 3.0"),
    "callback of re": ("import re\nk = [2.0]\np = re.compile('a')", "float(p.sub(lambda m: str(k[0]), 'a'))",
                       "k[0] = 3.0"),
    # bound methods of objects in C
    "get of a dict": ("d = {'f': 2.0}\ng = d.get", "g('f')", "d['f'] = 3.0"),
    "__getitem__ of a list": ("d = [2.0]\ng = d.__getitem__", "g(0)", "d[0] = 3.0"),
    "__getitem__ of an array": ("import numpy as np\nd = np.array([2.0])\ng = d.__getitem__", "float(g(0))",
                                "d[0] = 3.0"),
    "item of an array": ("import numpy as np\nd = np.array([2.0])\ng = d.item", "g(0)", "d[0] = 3.0"),
    "copy of a list": ("d = [2.0]\ng = d.copy", "g()[0]", "d[0] = 3.0"),
    "__len__ of a list": ("d = [1, 2]\ng = d.__len__", "g()", "d.append(3)"),
    "__reversed__ of a list": ("d = [2.0]\ng = d.__reversed__", "next(g())", "d[0] = 3.0"),
    "__contains__ of a set": ("d = {1}\ng = d.__contains__", "3.0 if g(2) else 2.0", "d.add(2)"),
    "__getitem__ of a deque": ("import collections\nd = collections.deque([2.0])\ng = d.__getitem__", "g(0)",
                               "d[0] = 3.0"),
    "partial of get": ("import functools\nd = {'f': 2.0}\ng = functools.partial(d.get, 'f')", "g()", "d['f'] = 3.0"),
    "getvalue of a buffer": ("import io\ns = io.BytesIO(b'2.0')\ng = s.getvalue", "float(g())",
                             "s.seek(0); s.write(b'3.0')"),
    "locked of a lock": ("import threading\nd = threading.Lock()\ng = d.locked", "3.0 if g() else 2.0", "d.acquire()"),
    "state of a generator": ("import random\nr = random.Random(0)\ng = r.getstate", "g()[1][-1]", "r.random()"),
    # views of dicts, and other containers
    "values of a dict": ("d = {'f': 2.0}\nv = d.values()", "sum(v)", "d['f'] = 3.0"),
    "items of a dict": ("d = {'f': 2.0}\nv = d.items()", "dict(v)['f']", "d['f'] = 3.0"),
    "keys of a dict": ("d = {2.0: 1}\nv = d.keys()", "sum(v)", "d.clear(); d[3.0] = 1"),
    "values of an OrderedDict": ("import collections\nd = collections.OrderedDict(f=2.0)\nv = d.values()", "sum(v)",
                                 "d['f'] = 3.0"),
    "chain map": ("import collections\nd = {'f': 2.0}\nv = collections.ChainMap({}, d)", "v['f']", "d['f'] = 3.0"),
    "counter": ("import collections\nd = collections.Counter('aa')", "d['a']", "d['a'] += 1"),
    "user dict": ("import collections\nd = collections.UserDict(f=2.0)", "d['f']", "d['f'] = 3.0"),
    "factory of a defaultdict": (
        "import collections\nd = collections.defaultdict(lambda: 2.0)\n"
        "def get():\n    found = d['f']\n    del d['f']\n    return found", "get()", "d.default_factory = lambda: 3.0",
    ),
    "mapping proxy": ("import types\nd = {'f': 2.0}\nv = types.MappingProxyType(d)", "v['f']", "d['f'] = 3.0"),
    "list in a named tuple": ("import collections\nd = collections.namedtuple('N', 'f')([2.0])", "d.f[0]",
                              "d.f[0] = 3.0"),
    "memory view": ("d = bytearray([2])\nv = memoryview(d)", "v[0]", "d[0] = 3"),
    "array of the standard library": ("import array\nd = array.array('d', [2.0])", "d[0]", "d[0] = 3.0"),
    "namespace": ("import types\nd = types.SimpleNamespace(f=2.0)", "d.f", "d.f = 3.0"),
    "item getter": ("import operator\nd = {'f': 2.0}\ng = operator.itemgetter('f')", "g(d)", "d['f'] = 3.0"),
    "template": ("import string\nd = string.Template('2')", "float(d.substitute())", "d.template = '3'"),
    "configuration": ("import configparser\nd = configparser.ConfigParser()\nd['a'] = {'f': '2.0'}",
                      "d.getfloat('a', 'f')", "d['a']['f'] = '3.0'"),
    "weak dict": ("import weakref\nclass O: pass\no = O()\nd = weakref.WeakKeyDictionary({o: 2.0})", "d[o]",
                  "d[o] = 3.0"),
    "weak reference": ("import weakref\nclass O: pass\no = O()\no.f = 2.0\nw = weakref.ref(o)", "w().f", "o.f = 3.0"),
    "ctypes number": ("import ctypes\nd = ctypes.c_double(2.0)", "d.value", "d.value = 3.0"),
    "text buffer": ("import io\nd = io.StringIO('2.0')", "float(d.getvalue())", "d.seek(0); d.write('3.0')"),
    "queue": ("import queue\nd = queue.Queue()\nd.put(1)", "d.qsize()", "d.put(2)"),
    # NumPy
    "view of an array": ("import numpy as np\nd = np.array([2.0])\nv = d[:]", "v[0]", "d[0] = 3.0"),
    "flat elements": ("import numpy as np\nd = np.array([2.0])\nv = d.flat", "v[0]", "d[0] = 3.0"),
    "record array": ("import numpy as np\nd = np.rec.array([(2.0,)], dtype=[('f', float)])", "d.f[0]", "d.f[0] = 3.0"),
    "masked array": ("import numpy as np\nd = np.ma.array([2.0, 5.0], mask=[0, 0])", "float(d.sum())",
                     "d.mask[1] = True"),
    "polynomial": ("import numpy as np\nd = np.polynomial.Polynomial([2.0])", "float(d(1.0))", "d.coef[0] = 3.0"),
    "size of buffers": ("import numpy as np\nnp.setbufsize(8192)", "np.getbufsize()", "np.setbufsize(16384)"),
    "print options": ("import numpy as np\nnp.set_printoptions(precision=2)",
                      "len(np.array2string(np.array([1 / 3])))", "np.set_printoptions(precision=5)"),
    # the interpreter and the system
    "decimal context": (
        "import decimal\ndecimal.getcontext().prec = 3", "float(decimal.Decimal(2) / decimal.Decimal(3))",
        "decimal.getcontext().prec = 9",
    ),
    "context of decimals": (
        "from decimal import Decimal, getcontext\ngetcontext().prec = 3\na, b = Decimal(2), Decimal(3)", "float(a / b)",
        "getcontext().prec = 9",
    ),
    "recursion limit": ("import sys\nsys.setrecursionlimit(2000)", "sys.getrecursionlimit()",
                        "sys.setrecursionlimit(3000)"),
    "recursion limit by name": (
        "import sys\nfrom sys import getrecursionlimit\nsys.setrecursionlimit(2000)", "getrecursionlimit()",
        "sys.setrecursionlimit(3000)",
    ),
    "switch interval": ("import sys\nsys.setswitchinterval(0.005)", "sys.getswitchinterval()",
                        "sys.setswitchinterval(0.007)"),
    "references": ("import sys\no, kept = [], []", "sys.getrefcount(o)", "kept.append(o)"),
    "garbage collection": ("import gc\ngc.enable()", "2.0 if gc.isenabled() else 3.0", "gc.disable()"),
    "locale": (
        "import locale\nlocale._override_localeconv = {}", "len(locale.localeconv()['decimal_point'])",
        "locale._override_localeconv = {'decimal_point': ',,'}",
    ),
    "threads": (
        "import threading\nwaiting = threading.waiting_ = threading.Event()", "threading.active_count()",
        "threading.Thread(target=waiting.wait, daemon=True).start()",
    ),
    "time-out of sockets": ("import socket\nsocket.setdefaulttimeout(None)", "socket.getdefaulttimeout() or 2.0",
                            "socket.setdefaulttimeout(7.0)"),
    "arguments of the program": ("import sys\nsys.argv_ = ['2']", "float(sys.argv_[0])", "sys.argv_[0] = '3'"),
    "environment": ("import os\nos.environ['FACTOR_'] = '2'", "float(os.environ.get('FACTOR_'))",
                    "os.environ['FACTOR_'] = '3'"),
    "file mode": (
        "import os\ndef mask():\n    found = os.umask(18)\n    os.umask(found)\n    return found + 1\nos.umask(18)",
        "mask()", "os.umask(63)",
    ),
    "context variable": ("import contextvars\nc = contextvars.ContextVar('c', default=2.0)", "c.get()", "c.set(3.0)"),
    "thread-local variable": ("import threading\nt = threading.local()\nt.f = 2.0", "t.f", "t.f = 3.0"),
    "level of a logger": ("import logging\nd = logging.getLogger('captured')\nd.setLevel(10)", "d.level",
                          "d.setLevel(20)"),
    "disabled logging": (
        "import logging\nd = logging.getLogger('captured too')\nd.setLevel(10)\nlogging.disable(0)",
        "2.0 if d.isEnabledFor(10) else 3.0", "logging.disable(50)",
    ),
    "filter of warnings": (
        "import warnings\nwarnings.simplefilter('ignore')\ndef raised():\n    try:\n        warnings.warn('captured')\n"
        "    except UserWarning:\n        return 3.0\n    return 2.0", "raised()", "warnings.simplefilter('error')",
    ),
    "lock": ("import threading\nd = threading.Lock()", "3.0 if d.locked() else 2.0", "d.acquire()"),
    # queries of classes and objects, and state read by library functions
    "registration with an abstract class": (
        "import abc\nclass A(abc.ABC): pass\nclass C: pass\nc = C()",
        "3.0 if isinstance(c, A) else 2.0",
        "A.register(C)",
    ),
    "registration with a derived abstract class": (
        "import abc\nclass A(abc.ABC): pass\nclass B(A): pass\nclass C: pass\nc = C()",
        "3.0 if isinstance(c, A) else 2.0",
        "B.register(C)",
    ),
    "registration with a class of numbers": (
        "import numbers\nclass C: pass\nc = C()",
        "3.0 if isinstance(c, numbers.Number) else 2.0",
        "numbers.Real.register(C)",
    ),
    "registration with an imported abstract class": (
        "from collections.abc import Sequence\nclass C: pass\nc = C()",
        "3.0 if isinstance(c, Sequence) else 2.0",
        "Sequence.register(C)",
    ),
    "registration that a pattern depends on": (
        "import abc\nclass A(abc.ABC): pass\nclass C: pass\nc = C()\ndef g():\n    match c:\n"
        "        case A(): return 3.0\n    return 2.0",
        "g()",
        "A.register(C)",
    ),
    "registration as a path": (
        "import os\nclass C: pass\nc = C()",
        "3.0 if isinstance(c, os.PathLike) else 2.0",
        "os.PathLike.register(C)",
    ),
    "method that a protocol asks for": (
        "import typing\n@typing.runtime_checkable\nclass P(typing.Protocol):\n    def f(self): ...\n"
        "class C: pass\nc = C()",
        "3.0 if isinstance(c, P) else 2.0",
        "C.f = lambda s: 1",
    ),
    "subclasses of a class": (
        "class A: pass",
        "float(len(A.__subclasses__()) + 2)",
        "class B_(A): pass",
    ),
    "registration that a generic function depends on": (
        "import functools, abc\nclass A(abc.ABC): pass\nclass C: pass\nc = C()\n@functools.singledispatch\n"
        "def g(o): return 2.0\n@g.register\ndef _(o: A): return 3.0",
        "g(c)",
        "A.register(C)",
    ),
    "reduction by copyreg": (
        "import copyreg, copy\nclass C:\n    f = 2.0\nc = C()",
        "copy.copy(c).f",
        "class D: f = 3.0\ncopyreg.pickle(C, lambda o: (D, ()))",
    ),
    "print options by %": (
        "import numpy as np\nnp.set_printoptions(precision=2)\na = np.array([1 / 3])",
        "float(len('%s' % a))",
        "np.set_printoptions(precision=7)",
    ),
    "write protection of an array": (
        "import numpy as np\na = np.ones(1)",
        "2.0 if a.flags.writeable else 3.0",
        "a.flags.writeable = False",
    ),
    "function of np.frompyfunc": (
        "import numpy as np\nk_ = [2.0]\nv = np.frompyfunc(lambda q: k_[0], 1, 1)",
        "float(v(1.0))",
        "k_[0] = 3.0",
    ),
    "cell that was empty": (
        "def mk():\n    def g():\n        try: return v\n        except NameError: return 2.0\n    def put(q):\n"
        "        nonlocal v\n        v = q\n    v = 1\n    del v\n    return g, put\ng, put = mk()",
        "g()",
        "put(3.0)",
    ),
    "replaced __dict__": (
        "class C: pass\nc = C()\nc.f = 2.0",
        "c.f",
        "c.__dict__ = {'f': 3.0}",
    ),
    "slot that was empty": (
        "class B: __slots__ = ('f',)\nc = B()\ndef g():\n    try: return c.f\n    except AttributeError: return 2.0",
        "g()",
        "c.f = 3.0",
    ),
    "slot like a special attribute": (
        "class C:\n    __slots__ = ('__f__',)\nc = C()\nc.__f__ = 2.0",
        "c.__f__",
        "c.__f__ = 3.0",
    ),
    "default of a named tuple": (
        "import collections\nN = collections.namedtuple('N', 'f', defaults=[2.0])",
        "N().f",
        "N.__new__.__defaults__ = (3.0,)",
    ),
    "_missing_ of an enumeration": (
        "import enum\nclass E(enum.Enum):\n    A = 2.0\n    B = 3.0\n    @classmethod\n"
        "    def _missing_(cls, v): return cls.A",
        "E(99).value",
        "E._missing_ = classmethod(lambda cls, v: cls.B)",
    ),
    "members of an enumeration": (
        "import enum\nclass E(enum.Enum):\n    A = 2.0\n    B = 3.0",
        "E['A'].value",
        "E._member_map_['A'] = E.B",
    ),
    "signature that a function gets later": (
        "import inspect\ndef h(a, f=2.0): pass",
        "float(len(inspect.signature(h).parameters))",
        "h.__signature__ = inspect.signature(lambda a, b, c: 1)",
    ),
    "source of a function": (
        "import inspect, linecache\nlinecache.cache['zz1'] = (1, None, ['def h(): pass\\n'], 'zz1')\n"
        "exec(compile('def h(): pass\\n', 'zz1', 'exec'))",
        "float(len(inspect.getsource(h)))",
        "linecache.cache['zz1'] = (1, None, ['def h(): pass # z\\n'], 'zz1')",
    ),
    "name of a class": (
        "class C: pass\nc = C()",
        "float(len(type(c).__name__) + 1)",
        "C.__name__ = 'CC'",
    ),
    "statistics of a cache": (
        "import functools\n@functools.lru_cache\ndef h(a): return a",
        "float(h.cache_info().currsize + 2)",
        "h(1)",
    ),
    "function behind a key": (
        "import functools\ns = [1]\nkey = functools.cmp_to_key(lambda a, b: s[0] * (a - b))",
        "sorted([2.0, 3.0], key=key)[0]",
        "s[0] = -1",
    ),
    "number of weak references": (
        "import weakref\nclass O: pass\no = O()\nkept = []",
        "float(weakref.getweakrefcount(o) + 2)",
        "kept.append(weakref.ref(o, print))",
    ),
    "finalizer": (
        "import weakref\nclass O: pass\no = O()\nf = weakref.finalize(o, int)",
        "2.0 if f.alive else 3.0",
        "o = None",
    ),
    "context variable that becomes None": (
        "import contextvars\nc = contextvars.ContextVar('c71', default=2.0)",
        "c.get() or 3.0",
        "c.set(None)",
    ),
    "list in a context variable": (
        "import contextvars\nc = contextvars.ContextVar('c6', default=[2.0])",
        "c.get()[0]",
        "c.get()[0] = 3.0",
    ),
    "context": (
        "import contextvars\nc = contextvars.ContextVar('c4', default=2.0)\nx_ = contextvars.copy_context()",
        "x_.run(c.get)",
        "x_.run(c.set, 3.0)",
    ),
    "semaphore": (
        "import threading\ns = threading.Semaphore(2)",
        "3.0 if s._value == 1 else 2.0",
        "s.acquire()",
    ),
    "attribute of a condition": (
        "import threading\ns = threading.Condition()\ns.f = 2.0",
        "s.f",
        "s.f = 3.0",
    ),
    "arguments read by argparse": (
        "import argparse, sys\np = argparse.ArgumentParser()\np.add_argument('--f', type=float, default=2.0)\n"
        "sys.argv[1:] = []",
        "p.parse_args().f",
        "sys.argv[1:] = ['--f', '3']",
    ),
    "home by expanduser": (
        "import os\nos.environ['HOME'] = '/a'",
        "float(len(os.path.expanduser('~')))",
        "os.environ['HOME'] = '/aa'",
    ),
    "environment by expandvars": (
        "import os\nos.environ['FF'] = '2'",
        "float(os.path.expandvars('$FF'))",
        "os.environ['FF'] = '3'",
    ),
    "home by pathlib": (
        "import os, pathlib\nos.environ['HOME'] = '/a'",
        "float(len(str(pathlib.Path.home())))",
        "os.environ['HOME'] = '/aa'",
    ),
    "folder for temporary files": (
        "import tempfile\ntempfile.tempdir = '/tmp'",
        "float(len(tempfile.gettempdir()))",
        "tempfile.tempdir = '/tmp/elsewhere'",
    ),
    "time zone": (
        "import time, os, datetime\nos.environ['TZ'] = 'UTC'\ntime.tzset()",
        "datetime.datetime(2026, 1, 1).timestamp() % 1e5 + 1",
        "os.environ['TZ'] = 'Asia/Tokyo'; time.tzset()",
    ),
    "time zone of mktime": (
        "import time, os\nos.environ['TZ'] = 'UTC'\ntime.tzset()",
        "time.mktime((2026, 1, 1, 0, 0, 0, 0, 1, -1)) % 1e5",
        "os.environ['TZ'] = 'Asia/Tokyo'; time.tzset()",
    ),
    "frame": (
        "import inspect\n",
        "float(inspect.currentframe().f_globals.get('zz9', 0))",
        "zz9 = 1",
    ),
    "dialect of csv": (
        "import csv\ncsv.register_dialect('z', delimiter=',')",
        "float(len(next(csv.reader(['1,2;3;4'], 'z'))))",
        "csv.register_dialect('z', delimiter=';')",
    ),
    "names of levels": (
        "import logging\nlogging.addLevelName(7, 'ab')",
        "float(len(logging.getLevelName(7)))",
        "logging.addLevelName(7, 'abc')",
    ),
    "handlers of a logger": (
        "import logging\na = logging.getLogger('zr')",
        "float(len(a.handlers) + 2)",
        "a.addHandler(logging.NullHandler())",
    ),
    "level of the root logger": (
        "import logging\nlogging.root.setLevel(30)",
        "float(logging.getLogger().level)",
        "logging.root.setLevel(40)",
    ),
    "warnings as errors that any except catches": (
        "import warnings, numpy as np\nwarnings.simplefilter('ignore')\ndef g():\n"
        "    try: np.ones(1) / np.zeros(1)\n    except: return 3.0\n    return 2.0",
        "g()",
        "warnings.simplefilter('error')",
    ),
    "traps of decimals": (
        "import decimal\ndecimal.getcontext().traps[decimal.DivisionByZero] = False\ndef g():\n"
        "    try: decimal.Decimal(1) / 0\n    except decimal.DivisionByZero: return 3.0\n    return 2.0",
        "g()",
        "decimal.getcontext().traps[decimal.DivisionByZero] = True",
    ),
    "flags of decimals": (
        "import decimal\ndecimal.getcontext().clear_flags()",
        "3.0 if decimal.getcontext().flags[decimal.Inexact] else 2.0",
        "decimal.Decimal(1) / 3",
    ),
    "method of an encoder": (
        "import json\nclass E(json.JSONEncoder):\n    def default(self, o): return 2.0\nclass O: pass\no = O()",
        "float(json.dumps(o, cls=E))",
        "E.default = lambda s, o: 3.0",
    ),
    "view of the buffer of a file": (
        "import io\ns = io.BytesIO(b'\\x02')\nb = s.getbuffer()",
        "float(b[0])",
        "b[0] = 3",
    ),
    "requires_grad of a tensor": (
        "import viewgrad as vg\nw = vg.ones(1)",
        "3.0 if w.requires_grad else 2.0",
        "w.requires_grad_()",
    ),
    "shape of a tensor": (
        "import viewgrad as vg\nh = [vg.ones(2)]",
        "float(h[0].shape[0])",
        "h[0] = vg.ones(3)",
    ),
    "window of a tensor": (
        "import viewgrad as vg\nw = vg.Tensor([2.0, 3.0])\nh = [w[:1]]",
        "(h[0] * 2.0 - w[:1])",
        "h[0] = w[1:]",
    ),
    "result of a cached function": (
        "import functools\nimport numpy as np\n@functools.cache\ndef g(): return np.full(2, 2.0)\ng()",
        "g()[0]",
        "g()[0] = 3.0",
    ),
    "result of a cached function of limited size": (
        "import functools\n@functools.lru_cache(2)\ndef g(n): return {'f': [2.0] * n}\ng(1)",
        "g(1)['f'][0]",
        "g(1)['f'][0] = 3.0",
    ),
    "first result of a cached function": (
        "import functools\n@functools.cache\ndef g(): return [2.0]",
        "g()[0]",
        "g()[0] = 3.0",
    ),
    "cleared cache of a function": (
        "import functools\nimport numpy as np\n@functools.cache\ndef g(): return np.ones(2)\ng()[0] = 2.0",
        "g()[0]",
        "g.cache_clear()",
    ),
}  # fmt: skip
RESET = (
    "import gc, logging, os, socket, sys, decimal, locale, builtins, math, numpy, viewgrad, fractions\n"
    "gc.enable(); logging.disable(0); os.umask(18); socket.setdefaulttimeout(None); sys.setswitchinterval(0.005)\n"
    "sys.setrecursionlimit(1000); decimal.getcontext().prec = 28; locale._override_localeconv = {}\n"
    "numpy.set_printoptions(precision=8); numpy.setbufsize(8192)\n"
    "import threading\n"
    "if hasattr(threading, 'waiting_'): threading.waiting_.set()\n"
    "for each in (viewgrad.Tensor, numpy, math, viewgrad, builtins, numpy.mean, numpy.polynomial.Polynomial,\n"
    "             fractions.Fraction, numpy):\n"
    "    for name in ('f_', 'g_'):\n"
    "        if name in vars(each): delattr(each, name)\n"
)
# Ways in which a function obtains the number, each as an expression for a call of `number()`.
WAYS = {
    "directly": ("", "number()"),
    "in a table": ("table = {'number': number}", "table['number']()"),
    "by a method": ("class Way:\n    def of(self): return number()\nway = Way()", "way.of()"),
    "by a bound method": ("class Way:\n    def of(self): return number()\nof = Way().of", "of()"),
    "by a default": ("def by(of=number): return of()", "by()"),
    "by a partial": ("import functools\npart = functools.partial(number)", "part()"),
    "by a closure": ("def wrap(of):\n    return lambda: of()\nwrapped = wrap(number)", "wrapped()"),
    "by a property": ("class Way: of = property(lambda self: number())\nway = Way()", "way.of"),
    "by map": ("", "next(map(lambda of: of(), [number]))"),
    "in a list of objects": ("class Way:\n    def __init__(self, of): self.of = of\nways = [Way(number)]",
                             "ways[0].of()"),
}  # fmt: skip


_numbers = itertools.count()


def program(kind, way="directly", has_source=False):
    """Return a function of a tensor that depends on captured state, and a function that changes the state.

    Arguments:
        kind: a key of `KINDS`, or of a table of captured_objects.py.
        way: a key of `WAYS`.
        has_source: whether Python finds the source of the function.
    """
    setup, number, change = next(table[kind] for table in (KINDS, OVERLOOKED, OTHERS) if kind in table)
    more, call = WAYS[way]
    namespace = {"__name__": "a_users_program"}
    source = f"{setup}\ndef number(): return {number}\n{more}\ndef scaled(x): return x * {call}\n"
    file = "/home/user/program.py"
    if has_source:
        file = f"/home/user/program_{next(_numbers)}.py"
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    exec(compile(source, file, "exec", dont_inherit=True), namespace)
    return namespace["scaled"], functools.partial(exec, change, namespace)


ARGUMENTS, HOME = list(sys.argv), os.environ.get("HOME", "")
FILTERS, SETTINGS = list(warnings.filters), np.geterr()


def reset():
    """Undo the effects of changes on the interpreter and on libraries."""
    exec(RESET, {})
    sys.argv[:] = ARGUMENTS
    os.environ["HOME"] = HOME
    os.environ.pop("TZ", None)
    time.tzset()
    decimal.setcontext(decimal.Context())
    logging.root.setLevel(logging.WARNING)
    tempfile.tempdir = None
    warnings.filters[:] = FILTERS
    warnings._filters_mutated()
    np.seterr(**SETTINGS)
