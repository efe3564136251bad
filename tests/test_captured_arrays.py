"""Arrays from the surroundings of adopted functions: their copies hold gradients, and they themselves refuse them."""

import collections
import contextvars
import copy
import functools
import statistics
import threading
import tracemalloc
import types
import weakref

import numpy as np
import pytest

import viewgrad as vg
from viewgrad.adoption.registry import registry_of
from viewgrad.errors import DetachedConversionError, SavedValueError
from viewgrad.tensor import captured_storage
from viewgrad.tensor.saved import SavedCopy

START = np.arange(6.0).reshape(2, 3) + 1.0
Pair = collections.namedtuple("Pair", "table number")

TABLE = START.copy()
TABLES = [START.copy(), 1.0]
NAMED = {"table": START.copy()}
SPACE = types.SimpleNamespace(table=START.copy(), number=2)
PAIR = Pair(START.copy(), 2)
module = types.ModuleType("constants_of_the_test")
module.TABLE = START.copy()
taken = np.copy  # set by each test: the way in which a function copies the table


def computed(table, x):
    own = taken(table)
    own[0, 1] = x * x
    own[0] *= x
    return (own * own).sum() + table.sum() * x


class Model:
    shared = START.copy()

    def __init__(self):
        self.table = START.copy()

    def of_object(self, x):
        return computed(self.table, x)

    @classmethod
    def of_class(cls, x):
        return computed(cls.shared, x)


MODEL = Model()


def of_global(x):
    return computed(TABLE, x)


def of_list(x):
    return computed(TABLES[0], x)


def of_dict(x):
    return computed(NAMED["table"], x)


def of_namespace(x):
    return computed(SPACE.table, x)


def of_named_tuple(x):
    return computed(PAIR.table, x)


def of_module(x):
    return computed(module.TABLE, x)


def of_attribute(x):
    return computed(MODEL.table, x)


def of_default(x, table=np.arange(6.0).reshape(2, 3) + 1.0):  # noqa: B008
    return computed(table, x)


def _enclosed():
    table = START.copy()
    return table, lambda x: computed(table, x)


ENCLOSED, of_closure = _enclosed()
of_partial = functools.partial(computed, START.copy())

PLACES = {
    "global": (of_global, TABLE),
    "list": (of_list, TABLES[0]),
    "dict": (of_dict, NAMED["table"]),
    "namespace": (of_namespace, SPACE.table),
    "named tuple": (of_named_tuple, PAIR.table),
    "module": (of_module, module.TABLE),
    "attribute": (of_attribute, MODEL.table),
    "method": (MODEL.of_object, MODEL.table),
    "class": (Model.of_class, Model.shared),
    "default": (of_default, of_default.__defaults__[0]),
    "closure": (of_closure, ENCLOSED),
    "partial": (of_partial, of_partial.args[0]),
}

COPIES = {
    "copy": lambda table: table.copy(),
    "np.copy": np.copy,
    "np.array": np.array,
    "deepcopy": copy.deepcopy,
    "product": lambda table: table * 1.0,
    "sum": lambda table: 1.0 + table,
    "astype": lambda table: table.astype(float),
    "reversed": lambda table: table[::-1].copy(),
    "transposed": lambda table: (table.T + 0.0).T,
    "advanced": lambda table: table[[0, 1]],
    "flatten": lambda table: table.flatten().reshape(2, 3),
    "matmul": lambda table: table @ np.eye(3),
    "elements": lambda table: np.array([list(row) for row in table]),
    "where": lambda table: np.where(table > 2.0, table, 0.0),
}


def by_vmap(f):
    return lambda x: vg.vmap(vg.grad(f))(np.array([x, 2.0 * x]))[0]


def by_jvp(f):
    return lambda x: vg.jvp(f, (x,), (1.0,))[1]


def by_checkpoint(f):
    return vg.grad(lambda x: vg.checkpoint(f)(x))


def compiled(f):
    return vg.grad(vg.compile(f))


MODES = {"grad": vg.grad, "jvp": by_jvp, "checkpoint": by_checkpoint, "vmap": by_vmap}


def difference(f, x, step=1e-5):
    return (f(x + step) - f(x - step)) / (2.0 * step)


@pytest.mark.parametrize("name", COPIES)
def test_copies_of_captured_arrays_hold_gradients(name):
    global taken
    taken = COPIES[name]
    for place, (f, array) in PLACES.items():
        expected = difference(f, 1.5)
        for mode, transform in MODES.items():
            assert float(transform(f)(1.5)) == pytest.approx(expected, rel=1e-6), (place, mode)
        assert np.array_equal(array, START), place


@pytest.mark.parametrize("place", PLACES)
def test_changes_of_captured_arrays_are_detected(place):
    global taken
    taken = COPIES["copy"]
    f, array = PLACES[place]
    transforms = [transform(f) for transform in (*MODES.values(), compiled)]
    for change in (0.0, 1.0, 2.0):
        array[1, 1] = 5.0 + change
        expected = difference(f, 1.5)
        for transform in transforms:
            assert float(transform(1.5)) == pytest.approx(expected, rel=1e-6)
    array[...] = START


WRITES = {
    "element": lambda table, x: table.__setitem__((0, 1), x),
    "slice": lambda table, x: table.__setitem__(slice(None), x),
    "view": lambda table, x: table.T[1].__setitem__(0, x),
    "advanced": lambda table, x: table.__setitem__([0], x),
    "mask": lambda table, x: table.__setitem__(table > 2.0, x),
    "augmented": lambda table, x: table.__imul__(x),
    "augmented view": lambda table, x: table[0].__iadd__(x),
    "reversed": lambda table, x: table.__setitem__(slice(None), table[::-1] * x),
    "flat": lambda table, x: table.flat.__setitem__(0, x),
    "fill": lambda table, x: table.fill(x),
    "out": lambda table, x: np.multiply(np.ones((2, 3)), x, out=table),
    "out, cumsum": lambda table, x: np.cumsum(np.ones((2, 3)) * x, axis=1, out=table),
    "copyto": np.copyto,
    "put": lambda table, x: np.put(table, [0], x),
    "at": lambda table, x: np.add.at(table, ([0], [1]), x),
    "asarray": lambda table, x: np.asarray(table).__setitem__((0, 1), x),
}
written = WRITES["element"]


def overwritten(x):
    written(TABLE, x)
    return (TABLE * TABLE).sum() * x


@pytest.mark.parametrize("mode", MODES)
def test_captured_arrays_refuse_gradients(mode):
    global written
    for name, write in WRITES.items():
        written = write
        with pytest.raises(DetachedConversionError, match="created outside the function") as caught:
            MODES[mode](overwritten)(1.5)
        assert "copy()" in str(caught.value), name
        assert np.array_equal(TABLE, START), name


def counted(x):
    TABLE[0, 0] += 1.0
    return x * TABLE[0, 0]


def functional(f):
    return vg.grad(vg.func.functionalize(vg.adopt(f)))


@pytest.mark.parametrize("transform", [vg.grad, by_jvp, compiled, functional])
def test_numbers_may_be_written_to_captured_arrays(transform):
    TABLE[...] = START
    slope = transform(counted)
    assert [float(slope(2.0)) for _ in range(3)] == [2.0, 3.0, 4.0]
    assert TABLE[0, 0] == 4.0
    TABLE[...] = START


def returned(x):
    return TABLE, TABLE[0, 0], isinstance(TABLE, np.ndarray), isinstance(TABLE[0, 0], float)


def test_captured_arrays_are_returned_as_they_are():
    assert vg.adopt(lambda: TABLE)() is TABLE and vg.adopt(lambda: [TABLE, 1.0])()[0] is TABLE
    array, number, *others = vg.adopt(returned)(1.0)
    assert array is TABLE and type(number) is np.float64 and all(others)


READ_ONLY = START.copy()
READ_ONLY.flags.writeable = False


def of_read_only(x):
    own = READ_ONLY.copy()
    own[0, 0] = x
    return own.sum()


def to_read_only(x):
    READ_ONLY[0, 0] = 1.0
    return x


def test_arrays_that_are_not_writeable():
    assert vg.grad(of_read_only)(1.0) == 1.0
    with pytest.raises(ValueError, match="read-only"):
        vg.grad(to_read_only)(1.0)


def test_objects_share_their_arrays_afterwards():
    class Pool:
        def __init__(self):
            self.first = self.second = START.copy()

        def run(self, x):
            self.second = self.first
            self.first[0, 0] = 7.0
            return x * self.second.sum()

    pool = Pool()
    assert vg.grad(pool.run)(1.0) == 27.0
    assert type(pool.second) is np.ndarray and pool.second is pool.first and pool.first[0, 0] == 7.0


def of_memory(x):
    own = np.array([1.0, 2.0, 4.0])
    return x * (TABLE.ctypes.data % 8 + statistics.mean(own) + statistics.mean(TABLE[0]))


def test_functions_that_read_plain_numbers():
    assert vg.grad(of_memory)(1.0) == pytest.approx(7.0 / 3.0 + 2.0)


def traced(x):
    own = TABLE.copy()
    own[0] = x
    return (own * TABLE[0, 0] * TABLE[1]).sum() + TABLE[:, 1].sum() * x[0]


def test_traces_hold_captured_arrays_as_constants():
    x = np.array([1.0, 2.0, 3.0])
    compiled = vg.compile(traced, specialize=True)
    for change in (0.0, 0.0, 0.0, 1.0, 1.0, 1.0):
        TABLE[...] = START
        TABLE[1, 1] += change
        assert vg.grad(compiled)(x) == pytest.approx(vg.grad(traced)(x))
        assert "eagerly:" not in str(compiled.explain())
    TABLE[...] = START


def test_traced_functions_that_write_to_captured_arrays_run_eagerly():
    compiled = vg.compile(counted, specialize=True)
    TABLE[...] = START
    assert [float(vg.grad(compiled)(2.0)) for _ in range(4)] == [2.0, 3.0, 4.0, 5.0]
    assert "it mutates captured state" in str(compiled.explain())
    TABLE[...] = START


MATRIX = np.random.default_rng(0).normal(size=(100, 100)) / 100.0


def stepped(u, changes=False):
    for number in range(50):
        u = MATRIX @ u + 0.1 * u
        if changes and number % 20 == 0:
            MATRIX[0, 0] += 1.0
    return u.sum()


def test_a_loop_saves_a_captured_array_once():
    u, slope = np.ones(100), vg.grad(stepped)
    slope(u)
    tracemalloc.start()
    try:
        slope(u)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * MATRIX.nbytes


def test_a_captured_array_is_saved_after_each_change():
    start, u, direction = MATRIX.copy(), np.ones(100), np.linspace(0.0, 1.0, 100)

    def along(t):
        MATRIX[...] = start
        return stepped(u + t * direction, changes=True)

    expected = difference(along, 0.0)
    MATRIX[...] = start
    assert vg.grad(stepped)(u, changes=True) @ direction == pytest.approx(expected, rel=1e-6)
    MATRIX[...] = start


SMALL = START[:, :2].copy()
HIDDEN = collections.UserList([[memoryview(SMALL).cast("B").cast("d")]])  # too deep in it for writes to be expected
ROW = SMALL[0]
ALIAS = vg.from_numpy(SMALL)


@pytest.fixture
def no_writers(monkeypatch):
    """Forget the objects captured by this and other modules through which arrays may be written to."""
    for product in (whole, parts):
        vg.grad(alternating)(np.ones(2), unseen, 1, 1, product)  # objects are noted when a function is first adopted
    monkeypatch.setattr(registry_of(globals()).surroundings, "have_writers", False)


def unseen(number):
    HIDDEN.data[0][0][0] = number


def by_view(number):
    ROW[0] = number


def by_from_numpy(number):
    ALIAS[0, 0] = number


def by_thread(number):
    thread = threading.Thread(target=by_view, args=(number,))
    thread.start()
    thread.join()


traced_write = vg.compile(by_view, specialize=True)


def by_trace(number):
    traced_write(number)


def whole(u):
    return SMALL @ u


def parts(u):
    return SMALL[:, 0] * u[0] + SMALL[:, 1:][:, 0] * u[1]


@pytest.fixture(params=[whole, parts])
def product(request):
    """The way in which a loop reads the array."""
    return request.param


def alternating(u, write, period, length, product=whole):
    for number in range(length):
        if number % period == 0:
            write(0.5 + number // period % 2 * 0.25)
        u = 0.5 * product(u) + u
    if length % 2:
        write(0.5)  # as it was at the first step
    return u.sum()


WRITERS = [by_view, by_from_numpy, by_thread, by_trace]


@pytest.mark.parametrize("length", [99, 100])
@pytest.mark.parametrize("period", [1, 7, 50, 97])
@pytest.mark.usefixtures("no_writers")
@pytest.mark.parametrize("write", WRITERS)
def test_writes_through_other_arrays_are_seen(write, period, length, product):
    u, direction = np.ones(2), np.array([1.0, -2.0])
    taken = (write, period, length, product)
    expected = difference(lambda t: alternating(u + t * direction, by_view, *taken[1:]), 0.0)
    assert vg.grad(alternating)(u, *taken) @ direction == pytest.approx(expected, rel=1e-6)
    assert not captured_storage.ASSUMED


@pytest.mark.usefixtures("no_writers")
def test_writes_through_an_argument_are_seen():
    def run(u, array):
        for number in range(100):
            if number in (70, 80):
                array[0, 0] = 0.75 if number == 70 else 0.5
            u = 0.5 * (SMALL @ u) + u
        return u.sum()

    u, direction = np.ones(2), np.array([1.0, -2.0])
    SMALL[...] = [[0.5, 0.5], [0.25, 0.25]]
    expected = difference(lambda t: run(u + t * direction, SMALL), 0.0)
    for array in (SMALL, SMALL.view(), vg.from_numpy(SMALL), vg.as_tensor(SMALL)):
        vg.adopt(run)(leaf := vg.Tensor(u, requires_grad=True), array).backward()
        assert float(leaf.grad @ direction) == pytest.approx(expected, rel=1e-6)


@pytest.mark.usefixtures("no_writers")
def test_frequent_writes_by_code_that_is_not_seen(product):
    u = np.ones(2)
    longest = captured_storage.FIRST // (2 if product is whole else 4)  # which reads the array twice in each step
    for period in range(1, longest + 1):
        expected = vg.grad(alternating)(u, by_view, period, 60, product)
        assert np.array_equal(vg.grad(alternating)(u, unseen, period, 60, product), expected)


@pytest.mark.usefixtures("no_writers")
@pytest.mark.parametrize("period", [20, 50, 97])
def test_other_writes_by_code_that_is_not_seen_raise(period, product):
    with pytest.raises(SavedValueError, match="code that viewgrad does not see"):
        vg.grad(alternating)(np.ones(2), unseen, period, 100, product)
    assert not captured_storage.ASSUMED


def generated():
    while True:
        SMALL[0, 0] = yield


GENERATOR = generated()
next(GENERATOR)
BYTES, REFERENCE = memoryview(SMALL).cast("B").cast("d"), weakref.ref(SMALL)
VARIABLE = contextvars.ContextVar("variable")
VARIABLE.set(SMALL)
LOCAL, OBJECTS, COUNTER = threading.local(), np.empty(1, object), collections.Counter({"array": SMALL})
LOCAL.array, OBJECTS[0] = SMALL, SMALL
PUT = SMALL.__setitem__


class Unadopted:
    def __init_subclass__(cls):
        raise TypeError

    def write(self, number):
        SMALL[0, 0] = number


UNADOPTED = Unadopted()
UNADOPTED_WRITERS = {
    "generator": lambda number: GENERATOR.send(number),
    "memoryview": lambda number: BYTES.__setitem__(0, number),
    "weak reference": lambda number: REFERENCE().__setitem__((0, 0), number),
    "context variable": lambda number: VARIABLE.get().__setitem__((0, 0), number),
    "local": lambda number: LOCAL.array.__setitem__((0, 0), number),
    "objects": lambda number: OBJECTS[0].__setitem__((0, 0), number),
    "counter": lambda number: COUNTER["array"].__setitem__((0, 0), number),
    "method": lambda number: PUT((0, 0), number),
    "unadopted": lambda number: UNADOPTED.write(number),
}  # fmt: skip


@pytest.mark.usefixtures("no_writers")
@pytest.mark.parametrize("name", UNADOPTED_WRITERS)
def test_objects_through_which_arrays_are_written_to_are_recognized(name):
    u, write = np.ones(2), UNADOPTED_WRITERS[name]
    for period, length in ((50, 99), (97, 100), (20, 61)):
        expected = vg.grad(alternating)(u, by_view, period, length)
        assert np.array_equal(vg.grad(alternating)(u, write, period, length), expected)


kept = []


def failing(u, write, product):
    for number in range(100):
        u = product(u)
        if number == 90:
            kept.append(u.sum())
            write(3.0)
    raise KeyError


@pytest.mark.usefixtures("no_writers")
@pytest.mark.parametrize("write", [unseen, by_view])
def test_values_saved_before_an_unseen_write_cannot_be_used(write, product):
    SMALL[0, 0] = 0.5
    kept.clear()
    u = vg.ones(2, requires_grad=True)
    with pytest.raises(KeyError):
        vg.adopt(failing)(u, write, product)
    if write is unseen:
        with pytest.raises(SavedValueError, match="code that viewgrad does not see"):
            kept[0].backward()
    else:
        kept[0].backward()
        SMALL[0, 0] = 0.5
        expected = np.linalg.matrix_power(SMALL, 91).sum(axis=0)
        assert np.array_equal(u.grad, expected) or u.grad == pytest.approx(expected, rel=1e-12)


def test_writes_between_calls_are_seen():
    def run(u):
        for _ in range(100):
            u = SMALL @ u
        return u.sum()

    u, slope = np.ones(2), vg.grad(run)
    for number in (0.5, 0.25, 0.25, 0.125):
        SMALL[...] = [[number, 0.5], [0.25, 0.125]]
        loss = vg.adopt(run)(leaf := vg.Tensor(u, requires_grad=True))
        expected = np.linalg.matrix_power(SMALL, 100).sum(axis=0)
        assert slope(u) == pytest.approx(expected, rel=1e-12)
        SMALL[...] = 7.0
        loss.backward()
        assert leaf.grad == pytest.approx(expected, rel=1e-12)


@pytest.mark.usefixtures("no_writers")
@pytest.mark.parametrize("array", [SMALL, MATRIX])
def test_a_loop_compares_a_captured_array_rarely(array, monkeypatch):
    def run(u):
        for _ in range(1000):
            u = array @ u
        return u.sum()

    SMALL[...] = 0.25
    slope, u = vg.grad(run), np.zeros(len(array))
    slope(u)
    count = 0
    matches = SavedCopy.matches

    def counted(copied, array):
        nonlocal count
        count += 1
        return matches(copied, array)

    monkeypatch.setattr(SavedCopy, "matches", counted)
    slope(u)
    assert count < 15


HOLDER = collections.Counter({"made": START.copy()})  # an object of a class that is not adopted


def into_plain_array(x):
    own = HOLDER["made"].copy()
    own[0, 0] = x
    return own.sum()


def into_array(x):
    own = np.array(HOLDER["made"])
    own[0, 0] = x
    return own.sum()


def test_errors_name_numpys_function_in_adopted_code():
    with pytest.raises(DetachedConversionError, match=r"numpy.array\(\) of it inside the function"):
        vg.grad(into_plain_array)(1.0)
    assert vg.grad(into_array)(1.0) == 1.0


def test_namespaces_are_shared_with_adopted_code():
    space = types.SimpleNamespace(table=START.copy(), scale=2.0, spare=1, exp=np.exp)

    def run(x):
        del space.spare
        space.scale = 3.0 * space.scale
        space.total = (space.table.sum() * x).copy()
        return space.total * space.scale + space.exp(x)

    assert vg.grad(run)(0.0) == 21.0 * 6.0 + 1.0
    assert space.scale == 6.0 and not hasattr(space, "spare") and float(space.total) == 0.0
    assert type(space) is types.SimpleNamespace and type(space.table) is np.ndarray
    space.spare, space.scale, space.table = 1, 1.0, np.ones(2)
    assert vg.grad(run)(0.0) == 2.0 * 3.0 + 1.0


def test_items_are_written_to_the_users_lists_and_dicts():
    items, names = [START.copy()], {"first": START.copy()}

    def run(x):
        for number in range(5):
            items.append(x * number)
            names[number] = items[-1]
        items[1] = items[0][0, 1] * x
        items[-2:] = [x]
        return sum(items[1:]) + names[2]

    assert vg.grad(run)(1.0) == 2.0 + 1.0 + 2.0 + 1.0 + 2.0
    assert [np.ndim(item) for item in items] == [2, 0, 0, 0, 0] and list(names) == ["first", 0, 1, 2, 3, 4]
    assert type(items) is list and type(names) is dict and items[0] is not names["first"]


SHAPED = np.arange(6.0)


def described(x):
    return SHAPED.flags.writeable, SHAPED.shape, str(SHAPED), repr(SHAPED[2:]), f"{SHAPED}", "%s" % SHAPED  # noqa: UP031


@pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")  # of NumPy 2.5
def test_captured_arrays_look_as_they_are():
    expected = described(1.0)
    adopted = vg.adopt(described)
    assert adopted(1.0) == expected
    SHAPED.shape = (2, 3)
    SHAPED.flags.writeable = False
    try:
        assert adopted(1.0) == described(1.0) != expected
        with pytest.raises(ValueError, match="read-only"):
            vg.adopt(lambda: SHAPED.fill(0.0))()
    finally:
        SHAPED.flags.writeable = True
        SHAPED.shape = (6,)
