"""More kinds of captured state: objects with hidden references, and state that is looked up by computed names.

`OVERLOOKED` are kinds that guards once missed. Each has the form of those in captured_state.py.
"""

from __future__ import annotations

OVERLOOKED = {
    'structured scalar': (
        "import numpy as np\na = np.zeros(1, [('f', float)]); a['f'] = 2.; s = a[0]",
        "float(s['f'])",
        "s['f'] = 3.",
    ),
    'kdtree data': (
        'from scipy.spatial import cKDTree\nimport numpy as np\nd = np.array([[2.]]); a = cKDTree(d)',
        'float(a.data[0,0])',
        'd[0,0] = 3.',
    ),
    'eval of code object': (
        "f = 2.\nc = compile('f', 'x', 'eval')",
        'eval(c)',
        'f = 3.',
    ),
    '__import__': (
        "import sys, types\nm = types.ModuleType('mm2'); m.f = 2.; sys.modules['mm2'] = m",
        "__import__('mm2').f",
        'm.f = 3.',
    ),
    'decimal kept context': (
        'import decimal\nc = decimal.Context(prec=4)',
        'float(c.divide(decimal.Decimal(1), 3))',
        'c.prec = 9',
    ),
    'recursion behaviour': (
        'import sys\nsys.setrecursionlimit(1000)\ndef deep(n): return 0 if n == 0 else 1 + deep(n-1)\n'
        'def g():\n    try: return 2. + 0 * deep(2000)\n    except RecursionError: return 3.',
        'g()',
        'sys.setrecursionlimit(9000)',
    ),
    'codecs registry': (
        "import codecs\ncodecs.register_error('zz', lambda e: ('22', e.end))",
        "float(len('é'.encode('ascii', 'zz')))",
        "codecs.register_error('zz', lambda e: ('333', e.end))",
    ),
    'datetime tz': (
        'import datetime\nclass Z(datetime.tzinfo):\n    n = 2\n    def utcoffset(s, d): return '
        'datetime.timedelta(hours=s.n)\nz = Z()\nd = datetime.datetime(2020,1,1,tzinfo=z)',
        'd.utcoffset().total_seconds() / 3600',
        'z.n = 3',
    ),
    'traceback object': (
        'import types\ntry: 1/0\nexcept ZeroDivisionError as e: err = e',
        'float(len(err.args) + 1)',
        'err.args = (1, 2)',
    ),
    'exception notes': (
        "err = ValueError('x')\nerr.f = 2.",
        'err.f',
        'err.f = 3.',
    ),
    'attribute of a handler': (
        'import logging\nh = logging.StreamHandler(); h.setLevel(2)',
        'float(h.level)',
        'h.setLevel(3)',
    ),
    'user attribute of a handler': (
        'import logging\nh = logging.StreamHandler(); h.f = 2.',
        'h.f',
        'h.f = 3.',
    ),
    'attribute of a thread': (
        'import threading\nh = threading.Thread(); h.f = 2.',
        'h.f',
        'h.f = 3.',
    ),
    'name of a thread': (
        "import threading\nh = threading.Thread(name='2')",
        'float(h.name)',
        "h.name = '3'",
    ),
    'function of viewgrad.numpy.vectorize': (
        'import viewgrad.numpy as np\nk = [2.]\nv = np.vectorize(lambda t: t * k[0])',
        'float(v(1.))',
        'k[0] = 3.',
    ),
    'replaced function of viewgrad.numpy.vectorize': (
        'import viewgrad.numpy as np\nv = np.vectorize(lambda t: t * 2.)',
        'float(v(1.))',
        'v.pyfunc = lambda t: t * 3.',
    ),
    'fill value of viewgrad.scipy': (
        'from viewgrad.scipy import interpolate\n'
        's = interpolate.interp1d([0., 1.], [0., 1.], bounds_error=False, fill_value=2.)',
        'float(s(5.))',
        's.fill_value = 3.',
    ),
    'cell itself': (
        'def pair():\n    k = 2.\n    def change(v):\n        nonlocal k; k = v\n'
        '    return (lambda: k).__closure__[0], change\nc, change = pair()',
        'c.cell_contents',
        'change(3.)',
    ),
    'attribute of a compiled function': (
        'import viewgrad as vg\nc = vg.compile(lambda x: x)\nc.f = 2.',
        'c.f',
        'c.f = 3.',
    ),
    'slice with objects': (
        'k = [2.]\ns = slice(k)',
        's.stop[0]',
        'k[0] = 3.',
    ),
    'generic alias': (
        'import types\nclass C: f = 2.\na = types.GenericAlias(C, (int,))',
        'a.f',
        'C.f = 3.',
    ),
    'generic alias origin': (
        'import types\nclass C: f = 2.\na = types.GenericAlias(C, (int,))',
        'a.__origin__.f',
        'C.f = 3.',
    ),
    'seed sequence spawn': (
        'import numpy as np\ns = np.random.SeedSequence(2)',
        'float(s.n_children_spawned + 2)',
        's.spawn(1)',
    ),
    'match args changed': (
        "class P:\n    __match_args__ = ('a', 'b')\n    a = 2.; b = 3.\np = P()\ndef g():\n    match "
        'p:\n        case P(v): return v\n    return 0.',
        'g()',
        "P.__match_args__ = ('b', 'a')",
    ),
    'try import': (
        "import sys\nsys.modules.pop('zz_opt2', None)\ndef g():\n    try:\n        import zz_opt2\n   "
        '     return 3.\n    except ImportError: return 2.',
        'g()',
        "import types; sys.modules['zz_opt2'] = types.ModuleType('zz_opt2')",
    ),
    'vars of module': (
        "parts = ['fac', 'tor']\nimport sys, types\nm = types.ModuleType('m9'); m.factor = 2.",
        "vars(m)[''.join(parts)]",
        'm.factor = 3.',
    ),
    'module __dict__ get': (
        "parts = ['fac', 'tor']\nimport sys, types\nm = types.ModuleType('m9'); m.factor = 2.",
        "m.__dict__.get(''.join(parts))",
        'm.factor = 3.',
    ),
    'getattr module computed': (
        "parts = ['fac', 'tor']\nimport sys, types\nm = types.ModuleType('m9'); m.factor = 2.",
        "getattr(m, ''.join(parts))",
        'm.factor = 3.',
    ),
    'getattr class computed': (
        "parts = ['fac', 'tor']\nclass C: factor = 2.",
        "getattr(C, ''.join(parts))",
        'C.factor = 3.',
    ),
    'getattr class attr of instance computed': (
        "parts = ['fac', 'tor']\nclass C: factor = 2.\nc = C()",
        "getattr(c, ''.join(parts))",
        'C.factor = 3.',
    ),
    'getattr method computed': (
        "parts = ['fac', 'tor']\nclass C:\n    def factor(s): return 2.\nc = C()",
        "getattr(c, ''.join(parts))()",
        'C.factor = lambda s: 3.',
    ),
    'class __dict__': (
        "parts = ['fac', 'tor']\nclass C: factor = 2.",
        "C.__dict__[''.join(parts)]",
        'C.factor = 3.',
    ),
    'attrgetter computed': (
        "parts = ['fac', 'tor']\nimport operator\nclass C: factor = 2.\nc = C()",
        "operator.attrgetter(''.join(parts))(c)",
        'C.factor = 3.',
    ),
    'methodcaller computed': (
        "parts = ['fac', 'tor']\nimport operator\nclass C:\n    def factor(s): return 2.\nc = C()",
        "operator.methodcaller(''.join(parts))(c)",
        'C.factor = lambda s: 3.',
    ),
    'hasattr computed': (
        "parts = ['fac', 'tor']\nclass C: pass\nc = C()",
        "3. if hasattr(c, ''.join(parts)) else 2.",
        'C.factor = 3.',
    ),
    'format attribute': (
        "parts = ['fac', 'tor']\nclass C: factor = 2.\nc = C()",
        "float(('{0.' + ''.join(parts) + '}').format(c))",
        'C.factor = 3.',
    ),
    'format attribute constant': (
        'class C: factor = 2.\nc = C()',
        "float('{0.factor}'.format(c))",
        'C.factor = 3.',
    ),
    'class loop over vars': (
        'class C:\n    a_f = 2.',
        "[v for k, v in vars(C).items() if k.startswith('a_')][0]",
        'C.a_f = 3.',
    ),
    'module loop over vars': (
        "import types\nm = types.ModuleType('m9'); m.a_f = 2.",
        "[v for k, v in vars(m).items() if k.startswith('a_')][0]",
        'm.a_f = 3.',
    ),
    'module loop new': (
        "import types\nm = types.ModuleType('m9'); m.a_f = 1.",
        "2. * sum([1. for k, v in vars(m).items() if k.startswith('a_')])",
        'm.a_g = 3.',
    ),
    'module dir': (
        "import types\nm = types.ModuleType('m9')",
        'float(len(dir(m)))',
        'm.factor = 3.',
    ),
    'class dir': (
        'class C: pass',
        'float(len(dir(C)))',
        'C.factor = 3.',
    ),
    'function dir': (
        'def g(): pass',
        'float(len(dir(g)))',
        'g.factor = 3.',
    ),
    'eval computed text': (
        "parts = ['fac', 'tor']\nfactor = 2.",
        "eval(''.join(parts))",
        'factor = 3.',
    ),
    'eval attr computed text': (
        "parts = ['fac', 'tor']\nclass C: pass\nc = C(); c.factor = 2.",
        "eval('c.' + ''.join(parts))",
        'c.factor = 3.',
    ),
    'eval class attr computed text': (
        "parts = ['fac', 'tor']\nclass C: factor = 2.\nc = C()",
        "eval('c.' + ''.join(parts))",
        'C.factor = 3.',
    ),
    'eval module attr computed text': (
        "parts = ['fac', 'tor']\nimport types\nm = types.ModuleType('m9'); m.factor = 2.",
        "eval('m.' + ''.join(parts))",
        'm.factor = 3.',
    ),
    'globals computed': (
        "parts = ['fac', 'tor']\nfactor = 2.",
        "globals()[''.join(parts)]",
        'factor = 3.',
    ),
}  # fmt: skip
OTHERS = {
    'strides of an array': (
        'import numpy as np\na = np.arange(4.).reshape(2,2)',
        'float(a.strides[0])',
        'a = np.asfortranarray(a)',
    ),
    'element through base': (
        'import numpy as np\nb = np.array([2.,5.,7.])\na = b[::2]',
        'a[0]',
        'b[0] = 3.',
    ),
    'element through other view list': (
        'import numpy as np\nb = np.array([2.,5.,7.])\na = [b[:1]]',
        'float(a[0][0])',
        'b[0] = 3.',
    ),
    'shape in place': (
        'import numpy as np\na = np.array([2.,5.])',
        'float(a.ndim + 1)',
        'a.shape = (2,1)',
    ),
    'resize': (
        'import numpy as np\na = np.array([2.,5.])',
        'float(a.size)',
        'a.resize(3, refcheck=False)',
    ),
    'structured array': (
        "import numpy as np\na = np.zeros(1, [('f', float)]); a['f'] = 2.",
        "float(a['f'][0])",
        "a['f'] = 3.",
    ),
    'object array nested': (
        'import numpy as np\na = np.array([[2.], None], object)',
        'a[0][0]',
        'a[0][0] = 3.',
    ),
    'string array': (
        "import numpy as np\na = np.array(['2'])",
        'float(a[0])',
        "a[0] = '3'",
    ),
    'masked mask': (
        'import numpy as np\na = np.ma.array([2.,5.], mask=[0,0])',
        'float(a.count())',
        'a[0] = np.ma.masked',
    ),
    'masked fill': (
        'import numpy as np\na = np.ma.array([2.,5.], mask=[1,0])',
        'float(a.filled()[0])',
        'a.fill_value = 3.',
    ),
    'nditer': (
        'import numpy as np\na = np.nditer(np.array([2.,3.]))',
        'float(a.value)',
        'a.iternext()',
    ),
    'flatiter index': (
        'import numpy as np\nb = np.array([2.,3.]); a = b.flat',
        'float(a.index + 2)',
        'next(a)',
    ),
    'array subclass attribute': (
        'import numpy as np\nclass A(np.ndarray): pass\na = np.array([2.]).view(A); a.f = 2.',
        'a.f',
        'a.f = 3.',
    ),
    'array interface': (
        'import numpy as np\nclass W:\n    def __init__(s): s.a = np.array([2.])\n    def '
        '__array__(s, dtype=None, copy=None): return s.a\nw = W()',
        'float(np.asarray(w)[0])',
        'w.a = np.array([3.])',
    ),
    'array interface dict': (
        'import numpy as np\nclass W:\n    def __init__(s): s.a = np.array([2.])\n    @property\n    '
        'def __array_interface__(s): return s.a.__array_interface__\nw = W()',
        'float(np.asarray(w)[0])',
        'w.a[0] = 3.',
    ),
    'sparse': (
        'import scipy.sparse as sp\na = sp.csr_matrix([[2.]])',
        'float(a[0,0])',
        'a.data[0] = 3.',
    ),
    'dok': (
        'import scipy.sparse as sp\na = sp.dok_matrix((1,1)); a[0,0]=2.',
        'float(a[0,0])',
        'a[0,0] = 3.',
    ),
    'spline coefs': (
        'from scipy.interpolate import CubicSpline\nimport numpy as np\na = '
        'CubicSpline([0.,1.,2.],[2.,2.,2.])',
        'float(a(0.0))',
        'a.c[-1] += 1.',
    ),
    'bspline extrapolate': (
        'from scipy.interpolate import BSpline\nimport numpy as np\na = BSpline(np.arange(6.), '
        'np.array([2.,2.,2.]), 2, extrapolate=True)',
        'float(np.nan_to_num(a(9.5)))',
        'a.extrapolate = False',
    ),
    'interp1d fill': (
        'from scipy.interpolate import interp1d\na = interp1d([0.,1.],[2.,2.], bounds_error=False, '
        'fill_value=2.)',
        'float(a(5.))',
        'a.fill_value = 3.',
    ),
    'frozen distribution kwds': (
        'from scipy import stats\na = stats.norm(loc=2., scale=1.)',
        'float(a.mean())',
        "a.kwds['loc'] = 3.",
    ),
    'linear operator': (
        'from scipy.sparse.linalg import aslinearoperator\nimport numpy as np\nM = np.array([[2.]]); '
        'a = aslinearoperator(M)',
        'float(a.matvec(np.ones(1))[0])',
        'M[0,0] = 3.',
    ),
    'errstate divide warn': (
        "import numpy as np, warnings\nnp.seterr(all='ignore')\ndef g():\n    with "
        "warnings.catch_warnings(record=True) as w:\n        warnings.simplefilter('always')\n        "
        'np.ones(1)/np.zeros(1)\n    return 2. + len(w)',
        'g()',
        "np.seterr(all='warn')",
    ),
    'seterrcall': (
        "import numpy as np\nk=[2.]\nnp.seterr(all='ignore')\nnp.seterrcall(lambda *a: "
        'k.__setitem__(0, 3.))\ndef g():\n    np.ones(1)/np.zeros(1)\n    return k[0]',
        'g()',
        "np.seterr(all='call')",
    ),
    'deep attribute': (
        'class C: pass\na = C(); a.b = C(); a.b.c = C(); a.b.c.d = C(); a.b.c.d.f = 2.',
        'a.b.c.d.f',
        'a.b.c.d.f = 3.',
    ),
    'list in dict in list': (
        "a = [{'k': [2.]}]",
        "a[0]['k'][0]",
        "a[0]['k'][0] = 3.",
    ),
    'OrderedDict order': (
        'import collections\nd = collections.OrderedDict(a=2., b=3.)',
        'next(iter(d.values()))',
        "d.move_to_end('a')",
    ),
    'dict order keys': (
        'd = dict(a=2., b=2.)',
        "2. if next(iter(d)) == 'a' else 3.",
        "d['a'] = d.pop('a')",
    ),
    'ChainMap maps': (
        "import collections\nd = collections.ChainMap({'a': 2.})",
        "d['a']",
        "d.maps.insert(0, {'a': 3.})",
    ),
    'data descriptor': (
        'class D:\n    def __init__(s): s.v = 2.\n    def __get__(s, o, t=None): return s.v\n    def '
        '__set__(s, o, v): s.v = v\nclass C: d = D()\nc = C()',
        'c.d',
        'c.d = 3.',
    ),
    'property of nested': (
        "class C:\n    def __init__(s): s._d = {'f': 2.}\n    @property\n    def f(s): return "
        "s._d['f']\nc = C()",
        'c.f',
        "c._d['f'] = 3.",
    ),
    '__getattr__ fallback': (
        "class C:\n    def __init__(s): s.__dict__['k'] = {'f': 2.}\n    def __getattr__(s, n): "
        'return s.k[n]\nc = C()',
        'c.f',
        "c.k['f'] = 3.",
    ),
    '__index__': (
        'class C:\n    n = 0\n    def __index__(s): return s.n\nc = C()',
        '[2., 3.][c]',
        'c.n = 1',
    ),
    '__eq__': (
        'class C:\n    n = 2\n    def __eq__(s, o): return s.n == o\n    __hash__ = None\nc = C()',
        '2. if c == 2 else 3.',
        'c.n = 5',
    ),
    'contextmanager': (
        'import contextlib\nk = [2.]\n@contextlib.contextmanager\ndef cm(): yield k[0]\ndef g():\n    '
        'with cm() as v: return v',
        'g()',
        'k[0] = 3.',
    ),
    '__missing__': (
        'class D(dict):\n    n = 2.\n    def __missing__(s, k): return s.n\nd = D()',
        "d['a']",
        'D.n = 3.',
    ),
    '__init_subclass__': (
        'k = []\nclass A:\n    def __init_subclass__(c): k.append(1)',
        'float(len(k) + 2)',
        'class B(A): pass',
    ),
    'super method': (
        'class A:\n    def f(s): return 2.\nclass B(A):\n    def f(s): return super().f()\nb = B()',
        'b.f()',
        'A.f = lambda s: 3.',
    ),
    'subclasshook': (
        'import abc\nk = [True]\nclass A(abc.ABC):\n    @classmethod\n    def __subclasshook__(c, o): '
        'return k[0]\nclass C: pass\nclass D: pass\nq = [C()]',
        '2. if isinstance(q[0], A) else 3.',
        'k[0] = False; q[0] = D()',
    ),
    'del attribute': (
        'class C: f = 2.\nc = C(); c.f = 3.',
        'c.f',
        'del c.f',
    ),
    'del dict item': (
        "d = {'a': 2.}",
        "d.get('a', 3.)",
        "del d['a']",
    ),
    'function closure cell_contents': (
        'def mk():\n    v = 2.\n    def g(): return v\n    return g\ng = mk()',
        'g()',
        'g.__closure__[0].cell_contents = 3.',
    ),
    'nested closure': (
        'def mk():\n    v = [2.]\n    def g():\n        def h(): return v[0]\n        return h()\n    '
        'return g, v\ng, v = mk()',
        'g()',
        'v[0] = 3.',
    ),
    'mutable default': (
        'def g(a=[2.]): return a[0]',
        'g()',
        'g.__defaults__[0][0] = 3.',
    ),
    '__globals__ of other': (
        "import types\nn = {'f': 2.}\ng = types.FunctionType((lambda: f).__code__, n)",
        'g()',
        "n['f'] = 3.",
    ),
    'lru_cache hit stale': (
        'import functools\nk = [2.]\n@functools.lru_cache\ndef h(a): return k[0]',
        'h(1) if True else 0.',
        'h.cache_clear(); k[0] = 3.',
    ),
    'cached_property del': (
        'import functools\nclass C:\n    k = 2.\n    @functools.cached_property\n    def f(s): return '
        's.k\nc = C()',
        'c.f',
        'c.k = 3.; del c.f',
    ),
    'singledispatch register': (
        'import functools\nclass Q: pass\nq = Q()\n@functools.singledispatch\ndef h(a): return 2.',
        'h(q)',
        'h.register(Q, lambda a: 3.)',
    ),
    'singledispatchmethod': (
        'import functools\nclass Q: pass\nq = Q()\nclass C:\n    @functools.singledispatchmethod\n    '
        'def h(s, a): return 2.\nc = C()',
        'c.h(q)',
        "C.h.register(Q)(lambda s, a: 3.) if False else C.__dict__['h'].register(Q, lambda s, a: 3.)",
    ),
    'iterator length hint': (
        'import operator\ni = iter([1, 2])',
        'float(operator.length_hint(i))',
        'next(i)',
    ),
    'gi_frame locals': (
        'def mk():\n    a = 2.\n    yield\n    a = 3.\n    yield\ng = mk(); next(g)',
        "g.gi_frame.f_locals['a']",
        'next(g)',
    ),
    'memoryview cast': (
        "import array\nb = array.array('d', [2.])\nm = memoryview(b).cast('B').cast('d')",
        'm[0]',
        'b[0] = 3.',
    ),
    'array.array frombuffer': (
        "import array, numpy as np\nb = array.array('d', [2.])\na = np.frombuffer(b)",
        'float(a[0])',
        'b[0] = 3.',
    ),
    'ctypes struct': (
        "import ctypes\nclass S(ctypes.Structure): _fields_ = [('f', ctypes.c_double)]\ns = S(2.)",
        's.f',
        's.f = 3.',
    ),
    'mmap': (
        'import mmap\nb = mmap.mmap(-1, 8); b[0] = 2',
        'float(b[0])',
        'b[0] = 3',
    ),
    'getenv default': (
        "import os\nos.environ.pop('ZZ_G', None)",
        "float(os.getenv('ZZ_G', '2'))",
        "os.environ['ZZ_G'] = '3'",
    ),
    'file content': (
        "import tempfile\np = tempfile.mktemp()\nopen(p,'w').write('2')",
        'float(open(p).read())',
        "open(p,'w').write('3')",
    ),
    'path exists': (
        'import tempfile, pathlib\np = pathlib.Path(tempfile.mktemp())',
        '3. if p.exists() else 2.',
        "p.write_text('3')",
    ),
    'json file': (
        "import tempfile, json\np = tempfile.mktemp()\njson.dump(2., open(p,'w'))\ndef g():\n    with "
        'open(p) as f: return json.load(f)',
        'g()',
        "with open(p,'w') as f: json.dump(3., f)",
    ),
    'threading.local subclass': (
        'import threading\nclass T(threading.local): f = 2.\nt = T()',
        't.f',
        't.f = 3.',
    ),
    'event': (
        'import threading\ne = threading.Event()',
        '3. if e.is_set() else 2.',
        'e.set()',
    ),
    'weakref dead': (
        'import weakref\nclass O: f = 2.\no = O()\nr = weakref.ref(o)',
        '3. if r() is None else 2.',
        'del o',
    ),
    'WeakSet': (
        'import weakref\nclass O: f = 2.\no = O()\nr = weakref.WeakSet([o])',
        'float(len(r) + 1)',
        'del o',
    ),
    'warnings filter list': (
        "import warnings\nwarnings.simplefilter('ignore')",
        'float(len(warnings.filters) + 1)',
        "warnings.filterwarnings('ignore', message='zzz9')",
    ),
    'string formatter': (
        "import string\nclass F(string.Formatter):\n    def format_field(s, v, f): return '2'\nf = F()",
        "float(f.format('{}', 1))",
        "F.format_field = lambda s, v, f: '3'",
    ),
    'copyreg': (
        'import copyreg, copy\nclass C: f = 2.\nc = C()',
        'copy.deepcopy(c).f',
        'copyreg.pickle(C, lambda c: (D, ()))\nclass D: f = 3.',
    ),
    'Fraction private': (
        'import fractions\nf = fractions.Fraction(2)',
        'float(f)',
        'f._numerator = 3',
    ),
    'ast node': (
        "import ast\nn = ast.parse('2', mode='eval')",
        'float(ast.literal_eval(n))',
        'n.body.value = 3',
    ),
    'configparser': (
        "import configparser\nc = configparser.ConfigParser()\nc.read_dict({'s': {'f': '2'}})",
        "c.getfloat('s', 'f')",
        "c['s']['f'] = '3'",
    ),
    'argparse default': (
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--f', type=float, default=2.)",
        'p.parse_args([]).f',
        'p.set_defaults(f=3.)',
    ),
    'sqlite': (
        "import sqlite3\nc = sqlite3.connect(':memory:')\nc.execute('create table t (f real)'); "
        "c.execute('insert into t values (2)')",
        "c.execute('select f from t').fetchone()[0]",
        "c.execute('update t set f = 3')",
    ),
    'xml element': (
        'import xml.etree.ElementTree as E\ne = E.fromstring(\'<a f="2"/>\')',
        "float(e.get('f'))",
        "e.set('f', '3')",
    ),
    '__lt__': (
        'class C:\n    def __init__(s, v): s.v = v\n    def __lt__(s, o): return s.v < o.v\nL = '
        '[C(2.), C(3.)]',
        'min(L).v',
        'C.__lt__ = lambda s, o: s.v > o.v',
    ),
    'get_type_hints': (
        'import typing\nclass C:\n    a: int\n',
        'float(len(typing.get_type_hints(C)) + 1)',
        "C.__annotations__['b'] = int",
    ),
    'dataclass fields': (
        'import dataclasses\n@dataclasses.dataclass\nclass C:\n    a: int\n',
        'float(len(dataclasses.fields(C)) + 1)',
        "C.__dataclass_fields__['b'] = C.__dataclass_fields__['a']",
    ),
    'id': (
        'a = [1]; b = a',
        '2. if id(a) == id(b) else 3.',
        'b = [1]',
    ),
    'vg tensor version': (
        'import viewgrad as vg\nt = vg.ones(1)',
        'float(t._version + 2)',
        't += 1',
    ),
    'methodcaller args': (
        'import operator\nk = [2.]\nclass C:\n    def f(s, a): return a[0]\nm = '
        "operator.methodcaller('f', k)\nc = C()",
        'm(c)',
        'k[0] = 3.',
    ),
    'vectorize pyfunc': (
        'import numpy as np\nv = np.vectorize(lambda a: 2.)',
        'float(v(1.))',
        'v.pyfunc = lambda a: 3.',
    ),
    'ufunc of a class': (
        'import numpy as np\nclass C:\n    n = 2.\n    def g(s, a): return s.n\nc = C()\nu = '
        'np.frompyfunc(c.g, 1, 1)',
        'float(u(1.))',
        'c.n = 3.',
    ),
    'fromfunction': (
        'import numpy as np\nk = [2.]',
        'float(np.fromfunction(lambda i: i * 0 + k[0], (1,))[0])',
        'k[0] = 3.',
    ),
    'quad of closure': (
        'from scipy.integrate import quad\nk = [2.]',
        'quad(lambda t: k[0], 0., 1.)[0]',
        'k[0] = 3.',
    ),
    'registry new class': (
        'R = {}\nclass B:\n    def __init_subclass__(c, **k): R[c.__name__] = c\nclass X(B): f = 2.',
        "R['X'].f",
        "exec('class X(B): f = 3.')",
    ),
    'borg': (
        "class B:\n    st = {'f': 2.}\n    def __init__(s): s.__dict__ = B.st\nb = B()",
        'b.f',
        'B().f = 3.',
    ),
    'setattr hooks': (
        "class C:\n    def __setattr__(s, n, v): s.__dict__['_' + n] = v\n    @property\n    def "
        'f(s): return s._f\nc = C(); c.f = 2.',
        'c.f',
        'c.f = 3.',
    ),
    'dict keyed by objects attr': (
        'class C:\n    f = 2.\nc = C(); D = {c: 1}',
        'next(iter(D)).f',
        'c.f = 3.',
    ),
    '0.0 to -0.0': (
        'import math\nv = 0.',
        '2. if math.copysign(1, v) > 0 else 3.',
        'v = -0.',
    ),
    'np float to float': (
        'import numpy as np\nv = np.float64(2)',
        '2. if isinstance(v, np.float64) else 3.',
        'v = 2.',
    ),
    'array minus zero': (
        'import numpy as np\nv = np.array([0.])',
        '2. if not np.signbit(v[0]) else 3.',
        'v[0] = -0.',
    ),
    'zero-size reshape in place': (
        'import numpy as np\nv = np.ones((0, 2))',
        'float(v.shape[1])',
        'v.shape = (0, 3)',
    ),
    'array through as_strided': (
        'import numpy as np\nb = np.array([2., 5.]); v = np.lib.stride_tricks.as_strided(b, (3,), (0,))',
        'float(v[1])',
        'b[0] = 3.',
    ),
    'very large list middle': (
        'v = [2.] * 50000',
        'v[25000]',
        'v[25000] = 3.',
    ),
    'partialmethod kw': (
        'import functools\nclass C:\n    def f(s, a): return a\n    g = functools.partialmethod(f, '
        'a=2.)\nc = C()',
        'c.g()',
        "C.__dict__['g'].keywords['a'] = 3.",
    ),
    'method deleted from instance': (
        'class C:\n    def f(s): return 3.\nc = C(); c.f = lambda: 2.',
        'c.f()',
        'del c.f',
    ),
    'metaclass call': (
        'class M(type):\n    n = 2.\n    def __call__(c): return M.n\nclass C(metaclass=M): pass',
        'C()',
        'M.n = 3.',
    ),
    'match statement on global': (
        "mode = ('a', 1)\ndef g():\n    match mode:\n        case ('a', x): return 2.\n        case "
        '_: return 3.',
        'g()',
        "mode = ('b', 1)",
    ),
    'exception class table': (
        'E = ValueError\ndef g():\n    try: raise ValueError\n    except E: return 2.\n    except '
        'Exception: return 3.',
        'g()',
        'E = KeyError',
    ),
    'localcontext': (
        'import decimal\nc = decimal.Context(prec=3)\ndef g():\n    with decimal.localcontext(c): '
        'return float(decimal.Decimal(2) / 3)',
        'g()',
        'c.prec = 9',
    ),
    'Decimal of captured instance only': (
        'import decimal\nd = decimal.Decimal(1)\ndecimal.getcontext().prec = 3\ndel decimal',
        'float(d / 3)',
        'import decimal as q; q.getcontext().prec = 9',
    ),
    'sys.modules replaced': (
        "import sys, types\nm = types.ModuleType('mm7'); m.f = 2.; sys.modules['mm7'] = m\nm2 = "
        "types.ModuleType('mm7'); m2.f = 3.",
        "sys.modules['mm7'].f",
        "sys.modules['mm7'] = m2",
    ),
    'module in sys.modules or not': (
        "import sys\nsys.modules.pop('zz_opt', None)",
        "3. if 'zz_opt' in sys.modules else 2.",
        "import types; sys.modules['zz_opt'] = types.ModuleType('zz_opt')",
    ),
    'inspect.getmembers': (
        'import inspect\nclass C: factor = 2.',
        "dict(inspect.getmembers(C))['factor']",
        'C.factor = 3.',
    ),
    'subclass loop attr': (
        'class A: pass\nclass B(A): f = 2.',
        'sum([s.f for s in A.__subclasses__()])',
        'B.f = 3.',
    ),
    'mro loop': (
        'class A: f = 2.\nclass B(A): pass',
        "[c.__dict__['f'] for c in B.__mro__ if 'f' in c.__dict__][0]",
        'A.f = 3.',
    ),
    'globals loop new': (
        'a_f = 2.',
        "2. + sum([1. for k, v in globals().items() if k.startswith('a_g')])",
        'a_g = 3.',
    ),
    'globals count': (
        'a_f = 2.',
        'float(len(globals()))',
        'a_g = 3.',
    ),
    'bit generator': (
        'import numpy as np\nb = np.random.PCG64(2)',
        "float(b.state['state']['state'] % 1000)",
        'b.advance(3)',
    ),
    'compiled captured': (
        'import viewgrad as vg\nk = [2.]\nc = vg.compile(lambda x: x * k[0])',
        'float(c(vg.ones(1))[0])',
        'k[0] = 3.',
    ),
    'implicit captured': (
        'import viewgrad as vg\nk = [2.]\nc = vg.func.implicit(lambda x, a: x - a * k[0], lambda a: a '
        '* k[0])',
        'float(c(vg.ones(1))[0])',
        'k[0] = 3.',
    ),
    'generator expression captured': (
        'L = [2.]\ndef g(): return sum(v for v in L)',
        'g()',
        'L[0] = 3.',
    ),
    'struct unpack': (
        "import struct\nb = bytearray(struct.pack('d', 2.))",
        "struct.unpack('d', b)[0]",
        "struct.pack_into('d', b, 0, 3.)",
    ),
    '__array_finalize__': (
        'import numpy as np\nclass A(np.ndarray):\n    def __array_finalize__(s, o): s.f = 2.\nb = '
        'np.ones(2)',
        'b.view(A).f',
        'def z(s, o): s.f = 3.\nA.__array_finalize__ = z',
    ),
    '__array_ufunc__': (
        'import numpy as np\nclass A:\n    def __array_ufunc__(s, u, m, *a, **k): return 2.\na = A()',
        'np.add(a, 1.)',
        'A.__array_ufunc__ = lambda s, u, m, *a, **k: 3.',
    ),
    '__array_function__': (
        'import numpy as np\nclass A:\n    def __array_function__(s, f, t, a, k): return 2.\na = A()',
        'np.sum(a)',
        'A.__array_function__ = lambda s, f, t, a, k: 3.',
    ),
}  # fmt: skip
