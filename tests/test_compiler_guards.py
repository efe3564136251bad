"""Guards: after each kind of change, a compiled function returns the result of the original."""

from __future__ import annotations

import enum
import functools
import importlib
import os
import random
import secrets
import sys
import textwrap
import uuid
import warnings

import attrs
import numpy as np
import pytest
from leaves import leaf

import viewgrad as vg
from viewgrad.errors import NotCompiledWarning
from viewgrad.symbolic import function_of


def grown(x, n=None):
    y = vg.zeros(len(x))
    y[0] = x[0]
    for i in range(1, len(x)):
        y[i] = y[i - 1] * 0.9 + x[i]
    return y.sum()


def agree(compiled, f, *calls):
    """Return whether two functions have the same values and gradients for some arguments, drawn separately for each."""
    for make in calls:
        found = []
        for function in (compiled, f):
            args = make()
            tensors = [arg for arg in args if isinstance(arg, vg.Tensor) and arg.requires_grad]
            value = function(*args)
            value = vg.as_tensor(value)
            grads = vg.autograd.grad(value, tensors, allow_unused=True) if value.requires_grad else []
            found.append([value.item(), *[g is not None and g.tolist() for g in grads]])
        np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-12)
        for one, other in zip(found[0][1:], found[1][1:]):
            np.testing.assert_allclose(one, other, rtol=1e-10)


def test_a_program_for_each_shape_dtype_and_flag():
    compiled = vg.compile(grown, executor="python")
    calls = [
        lambda: (leaf(1.0, 2.0, 3.0, 4.0, 5.0),),
        lambda: (leaf(1.0, 2.0, 3.0),),
        lambda: (vg.Tensor([1.0, 2.0, 3.0, 4.0, 5.0]),),
        lambda: (vg.Tensor(np.arange(4, dtype=np.float32), requires_grad=True),),
        lambda: (np.arange(5.0),),
    ]
    agree(compiled, grown, *(call for call in calls for _ in range(3)))


def test_a_branch_on_a_value():
    def f(x):
        y = x * 1.0
        for i in range(4):
            if y[i] > 0:
                y[i] *= 3.0
            else:
                y[i] -= 1.0
        return (y * y).sum()

    compiled = vg.compile(f, executor="python")
    signs = [(1, 1, 1, 1), (1, 1, 1, 1), (1, 1, 1, 1), (1, -1, 1, 1), (1, -1, 1, 1), (1, -1, 1, 1), (1, 1, 1, 1)]
    agree(compiled, f, *[lambda s=s: (leaf(*(np.array(s) * 1.5)),) for s in signs])
    assert "control flow depends on has changed at" in compiled.explain()


def test_concretized_values_are_guarded():
    def f(x):
        n = int(x[0].item())
        return (x * n).sum() + float(x[1].detach()) * x[2]

    compiled = vg.compile(f, executor="python")
    agree(compiled, f, *[lambda v=v: (leaf(v, 2.0, 3.0),) for v in (2.0, 2.0, 2.0, 3.0, 3.0, 3.0, 2.0)])


def test_repeated_retracing_warns_with_the_line():
    def f(x):
        return x.sum() * x[0].detach().item()

    compiled = vg.compile(f, executor="python")
    with pytest.warns(NotCompiledWarning, match=r"control flow depends on has changed at .*test_compiler_guards.py"):
        agree(compiled, f, *[lambda v=v: (leaf(v, 2.0),) for v in range(1, 30)])


def test_numbers_among_the_arguments():
    def f(x, rate, steps):
        for _ in range(steps):
            x = x * rate
        return x.sum()

    compiled = vg.compile(f, executor="python")
    agree(
        compiled,
        f,
        *[
            lambda rate=rate, steps=steps: (leaf(1.0, 2.0), rate, steps)
            for rate, steps in (
                (0.5, 3),
                (0.5, 3),
                (0.5, 3),
                (0.7, 3),
                (0.7, 3),
                (0.7, 3),
                (0.5, 4),
                (0.5, 4),
                (0.5, 3),
            )
        ],
    )


def test_ever_changing_numbers_end_compilation_with_a_warning():
    compiled = vg.compile(lambda x, rate: (x * rate).sum(), executor="python")
    with pytest.warns(NotCompiledWarning, match="as arrays"):
        agree(compiled, lambda x, rate: (x * rate).sum(), *[lambda r=r: (leaf(1.0), r) for r in range(30)])


scale = 2.0
weights = None


def test_captured_variables():
    global scale, weights
    kept = {"shift": 1.0, "tensor": leaf(1.0, 2.0)}
    table = np.array([1.0, 2.0])

    def f(x):
        return (x * scale + kept["shift"] * kept["tensor"] + table).sum() + (0.0 if weights is None else weights.sum())

    compiled = vg.compile(f, executor="python")

    def check():
        agree(compiled, f, *[lambda: (leaf(1.0, 2.0),)] * 3)

    try:
        check()
        scale = 3.0
        check()
        kept["shift"] = 5.0
        check()
        with vg.no_grad():
            kept["tensor"].mul_(2.0)
        check()
        kept["tensor"] = leaf(7.0, 8.0)
        check()
        table[0] = 9.0
        check()
        weights = vg.ones(3)
        check()
        weights = vg.ones(3, requires_grad=True)
        check()
    finally:
        scale, weights = 2.0, None


def test_the_gradient_of_a_captured_tensor():
    w = leaf(1.0, 2.0, 3.0)

    def f(x):
        return (w * x * x).sum()

    compiled = vg.compile(f, executor="python")
    for seed in range(4):
        x = vg.Tensor(np.random.default_rng(seed).normal(size=3), requires_grad=True)
        gradients = vg.autograd.grad(compiled(x), [x, w])
        np.testing.assert_allclose(gradients[1].numpy(), x.detach().numpy() ** 2)
    assert "compiled, python" in compiled.explain()


class Model:
    """An object with a tensor and a number."""

    def __init__(self):
        self.weight = leaf(1.0, 2.0)
        self.factor = 2.0

    def __call__(self, x):
        return (x * self.weight * self.factor).sum()


def test_captured_and_passed_objects_and_functions():
    model, kept, factors = Model(), {3.0}, np.array([1.0, 2.0])

    def inner(x):
        return x * sum(kept)

    cases = [
        vg.compile(model, executor="python"),
        vg.compile(lambda x, m=model: m(x), executor="python"),
        functools.partial(vg.compile(lambda m, x: m(x), executor="python"), model),
        functools.partial(vg.compile(lambda g, x: g(x).sum(), executor="python"), inner),
        vg.compile(functools.partial(lambda table, x: (table * x).sum(), factors), executor="python"),
    ]
    plain = [model, model, model, lambda x: inner(x).sum(), lambda x: (factors * x).sum()]
    for change in (
        lambda: None,
        lambda: setattr(model, "factor", 3.0),
        lambda: setattr(model, "weight", leaf(5.0, 6.0)),
        lambda: kept.add(4.0),
        lambda: factors.fill(7.0),
    ):
        change()
        for compiled, function in zip(cases, plain):
            agree(compiled, function, *[lambda: (leaf(1.0, 2.0),)] * 3)


def test_an_iterator_is_not_compiled():
    numbers = iter(range(100))
    compiled = vg.compile(lambda x: (x * next(numbers)).sum(), executor="python")
    assert [compiled(leaf(1.0)).item() for _ in range(5)] == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert "iterator" in compiled.explain()


def test_attributes_are_not_mistaken_for_globals():
    names = {"np": np, "log": iter(range(3)), "sum": iter(range(3)), "factor": 2.0}
    exec(
        "def f(x):\n"
        "    class Scale:\n"
        "        value = factor\n"
        "    return [np.log(x * Scale.value).sum() for _ in range(1)][0]\n"
        "def g(x):\n"
        "    return (x * next(log)).sum()\n",
        names,
    )
    compiled = vg.compile(names["f"], executor="python")
    for factor in (2.0, 2.0, 2.0, 3.0, 3.0):  # a class inside the function reads the factor
        names["factor"] = factor
        assert compiled(leaf(1.0)).item() == pytest.approx(np.log(factor))
    assert "iterator" not in compiled.explain()
    assert "runs eagerly" not in compiled.explain()
    drawing = vg.compile(names["g"], executor="python")
    assert [drawing(leaf(1.0)).item() for _ in range(3)] == [0.0, 1.0, 2.0]
    assert "iterator" in drawing.explain()


def test_random_numbers_are_drawn_each_time():
    generator = np.random.default_rng(0)
    drawn = {
        "global": lambda x: (x * np.random.random()).sum(),  # noqa: NPY002
        "generator": lambda x: (x * generator.random()).sum(),
    }
    for f in drawn.values():
        compiled = vg.compile(f, executor="python")
        assert len({compiled(leaf(1.0)).item() for _ in range(5)}) == 5
        assert "random numbers" in compiled.explain()


UNSEEDED = {
    "default_rng": lambda: np.random.default_rng().random(),
    "a bit generator": lambda: np.random.Generator(np.random.PCG64()).random(),
    "the older one": lambda: np.random.RandomState().rand(),
    "Python's": lambda: random.Random().random(),
}
DRAWN = {
    "of the system": lambda: random.SystemRandom().random(),
    "bytes": lambda: os.urandom(1)[0] / 256,
    "secrets": lambda: secrets.randbelow(2) * 1.0,
    "names": lambda: uuid.uuid4().bytes[0] / 256,
}


@pytest.mark.parametrize("name", UNSEEDED)
def test_generators_without_a_seed_are_refused(name):
    def f(x):
        return (x * (UNSEEDED[name]() > 0.5)).sum()  # the same in half of all runs

    for escapes in ("error", "guard"):
        with pytest.raises(vg.errors.TraceError, match="without a seed"):
            vg.symbolic.trace(f, leaf(1.0), escapes=escapes)
    compiled = vg.compile(f, executor="python", check=False)
    assert {compiled(leaf(1.0)).item() for _ in range(60)} == {0.0, 1.0}
    assert "without a seed" in compiled.explain()
    assert isinstance(UNSEEDED[name](), float)  # outside traces, drawing works as usual


@pytest.mark.parametrize("package", ["set", "unset"])
def test_relative_imports_are_resolved_from_the_level_of_the_instruction(package, tmp_path, monkeypatch):
    folder = tmp_path / f"levels_{package}"
    folder.joinpath("inner").mkdir(parents=True)
    folder.joinpath("__init__.py").write_text("SCALE = 2.0\n")
    folder.joinpath("constants.py").write_text("SCALE = 3.0\n")
    folder.joinpath("inner", "__init__.py").write_text("")
    program = """
    def program(x):
        x = x * 3000 * 7
        from .. import SCALE as outer
        x = x * 1
        from ..constants import SCALE
        return x * outer * SCALE
    """
    folder.joinpath("inner", "model.py").write_text(textwrap.dedent(program))
    monkeypatch.syspath_prepend(tmp_path)
    model = importlib.import_module(f"levels_{package}.inner.model")
    if package == "unset":
        del model.__package__
    constants = importlib.import_module(f"levels_{package}.constants")
    f = vg.compile(model.program)
    for scale in (3.0, 5.0):
        for outer in (2.0, 4.0):
            constants.SCALE, sys.modules[f"levels_{package}"].SCALE = scale, outer
            for _ in range(3):
                assert f(vg.Tensor([1.0])).tolist() == [21000 * scale * outer]


@pytest.mark.parametrize("name", DRAWN)
def test_system_random_numbers_are_refused_with_the_line(name):
    def f(x):
        return (x * (DRAWN[name]() > 0.5)).sum()

    with pytest.raises(vg.errors.TraceError, match=r"drawing random bytes .* at .*test_compiler_guards\.py:\d+"):
        vg.symbolic.trace(f, leaf(1.0))
    with pytest.raises(vg.errors.TraceError, match=r"without a seed.* at .*test_compiler_guards\.py:\d+"):
        vg.symbolic.trace(lambda x: x * random.Random().random(), leaf(1.0))
    compiled = vg.compile(f, executor="python", check=False)
    assert {compiled(leaf(1.0)).item() for _ in range(60)} == {0.0, 1.0}
    assert isinstance(DRAWN[name](), float)


def test_random_numbers_drawn_by_imports_are_ignored(tmp_path, monkeypatch):
    tmp_path.joinpath("draws_at_import.py").write_text("import numpy as np\nDRAWN = np.random.default_rng()\n")
    monkeypatch.syspath_prepend(tmp_path)

    def f(x):
        import draws_at_import

        return x * (2.0 if draws_at_import.DRAWN else 3.0)

    assert function_of(f, leaf(1.0))(leaf(3.0)).tolist() == [6.0]


def test_seeded_generators_are_part_of_a_program():
    def f(x):
        return (x * (np.random.default_rng(3).random() + random.Random(4).random())).sum()

    compiled = vg.compile(f, executor="python")
    assert {compiled(leaf(1.0)).item() for _ in range(4)} == {f(leaf(1.0)).item()}
    assert "runs eagerly" not in compiled.explain()
    assert random.Random.seed.__module__ == "random" and random.Random().random() != random.Random().random()


def test_writes_to_arguments_are_visible_with_their_history():
    def f(x, out):
        for i in range(3):
            out[i] = x[i] * 2.0
        return out.sum()

    compiled = vg.compile(f, executor="python")
    for _ in range(4):
        x = leaf(1.0, 2.0, 3.0)
        out = vg.zeros(4)
        view = out[:2]
        version = out._version
        value = compiled(x, out)
        np.testing.assert_array_equal(out.detach().numpy(), [2, 4, 6, 0])
        assert out._version > version
        np.testing.assert_array_equal(vg.autograd.grad((view * view).sum() + value, x)[0].numpy(), [10, 18, 2])


def test_writes_to_a_captured_tensor_are_visible():
    total = vg.zeros(2)

    def f(x):
        total.add_(x.detach())
        return (x * total).sum()

    compiled = vg.compile(f, executor="python")
    for n in range(1, 6):
        assert compiled(leaf(1.0, 2.0)).item() == 5.0 * n
        np.testing.assert_array_equal(total.numpy(), [n, 2 * n])


def test_arguments_that_share_memory():
    def f(x, y):
        y[0] = 5.0
        return (x * y).sum()

    compiled = vg.compile(f, executor="python")

    def apart():
        return leaf(1.0, 2.0) * 1.0, vg.ones(2)

    def together():
        base = leaf(1.0, 2.0, 3.0) * 1.0
        return base[:2], base[1:]

    def twice():
        x = leaf(1.0, 2.0) * 1.0
        return x, x

    agree(compiled, f, apart, apart, apart, together, together, together, twice, twice, twice, apart)


def test_an_exception_leaves_the_same_partial_writes():
    def f(x, out):
        out[0] = x[0]
        if x[1] < 0:
            raise ValueError("negative")
        out[1] = x[1]
        return out.sum()

    compiled = vg.compile(f, executor="python")
    for _ in range(3):
        compiled(leaf(1.0, 2.0), vg.zeros(2))
    out = vg.zeros(2)
    with pytest.raises(ValueError, match="negative"):
        compiled(leaf(3.0, -1.0), out)
    np.testing.assert_array_equal(out.detach().numpy(), [3, 0])
    assert compiled(leaf(3.0, 1.0), out).item() == 4.0


def test_division_by_zero_matches_numpy():
    def f(x):
        y = vg.zeros(3)
        for i in range(3):
            y[i] = np.log(x[i]) / x[i]
        return y.sum()

    for executor in ("python", None):
        compiled = vg.compile(f, executor=executor)
        with np.errstate(all="ignore"):
            for _ in range(3):
                assert compiled(leaf(1.0, 2.0, 3.0)).item() == f(leaf(1.0, 2.0, 3.0)).item()
            assert compiled(leaf(1.0, 0.0, 3.0)).item() == -np.inf
            assert np.isnan(compiled(leaf(1.0, -1.0, 3.0)).item())


def test_uncompiled_functions_run_eagerly_and_explain_why():
    class Double(vg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    def hooked(x):
        y = x * 2
        y.register_hook(lambda grad: grad * 10)
        return y.sum()

    cases = {
        lambda x: Double.apply(x).sum(): None,
        hooked: None,
        lambda x: (x * 1j).real.sum(): "complex128",
        lambda x: (x * 1j).real.sum(): "complex",
    }
    for f, reason in cases.items():
        compiled = vg.compile(f, executor="python")
        agree(compiled, f, *[lambda: (leaf(1.0, 2.0),)] * 4)
        assert "runs eagerly" in compiled.explain()
        assert reason is None or reason in compiled.explain()


def test_modes_that_intercept_operators_see_them():
    compiled = vg.compile(grown, executor="python")
    x = leaf(1.0, 2.0, 3.0)
    for _ in range(3):
        compiled(x)
    with vg.autograd.forward_ad.dual_level():
        dual = vg.autograd.forward_ad.make_dual(x.detach(), vg.ones(3))
        assert vg.autograd.forward_ad.unpack_dual(compiled(dual)).tangent is not None
    with vg.autograd.detect_anomaly():
        compiled(x).backward()


def test_executors_by_name():
    with pytest.raises(ValueError, match="must be 'python' or 'numba', not 'fast'"):
        vg.compile(grown, executor="fast")


@pytest.mark.numba
def test_compiler_failures_run_eagerly_with_a_warning(monkeypatch):
    def fail(*args):
        raise KeyError("never thought of")

    monkeypatch.setattr("viewgrad.compiler.pipeline.differentiated", fail)
    compiled = vg.compile(lambda x: (x * x).sum(), executor="python")
    assert compiled(leaf(1.0, 2.0)).item() == 5
    with pytest.warns(vg.errors.NotCompiledWarning, match="KeyError.*a bug in viewgrad"):
        assert compiled(leaf(1.0, 2.0)).item() == 5
    assert compiled(leaf(1.0, 3.0)).item() == 10


@pytest.mark.parametrize("kind", [float, np.float64])
def test_changing_floats_become_inputs(kind):
    def f(x, alpha, rates):
        y = vg.zeros(len(x))
        for i in range(1, len(x)):
            y[i] = alpha * y[i - 1] + rates["beta"] * x[i]
        return (y * y).sum()

    compiled = vg.compile(f, executor="python")
    for number in range(20):
        x = leaf(1.0, 2.0, 3.0, 4.0)
        other = leaf(1.0, 2.0, 3.0, 4.0)
        alpha, beta = kind(0.1 + 0.01 * number), kind(0.5 - 0.02 * number)
        found, wanted = compiled(x, alpha, {"beta": beta}), f(other, alpha, {"beta": beta})
        assert found.item() == pytest.approx(wanted.item(), rel=1e-13)
        mine, theirs = vg.autograd.grad(found, x)[0], vg.autograd.grad(wanted, other)[0]
        np.testing.assert_allclose(mine.numpy(), theirs.numpy())
    assert found.grad_fn.name() == "CompiledBackward", compiled.explain()
    assert len(compiled.specializations) == 2


@pytest.mark.parametrize("first", [2.0, np.float64(2.0), np.float32(2.0)])
def test_changing_floats_have_the_promotion_of_their_types(first):
    def f(x, a):
        return (x * a).sum() + a * 3

    compiled = vg.compile(f, executor="python", specialize=True)
    x = np.array([1.0, 2.0], np.float32)
    for a in (first, 3.0, 4.0, np.float64(5.0), np.float32(5.0), 5.0, 3.0, np.float64(3.0)):
        for values in (x, x.astype(float)):
            for _ in range(3):
                found, wanted = compiled(values, a), f(values, a)
                assert np.asarray(found).dtype == wanted.dtype
                assert float(found) == pytest.approx(float(wanted))


def test_types_of_changing_floats_are_part_of_the_signature():
    compiled = vg.compile(lambda x, a: x * (2.0 if isinstance(a, np.float64) else 3.0), executor="python")
    for a in (np.float64(1.0), np.float64(2.0), np.float32(2.0), np.float64(3.0), np.float32(3.0)):
        assert compiled(vg.ones(2), a).tolist() == ([2.0, 2.0] if isinstance(a, np.float64) else [3.0, 3.0])


AS_NUMBERS = {
    "hasattr": lambda x, a: x * (2.0 if hasattr(a, "dtype") else 3.0),
    "isinstance": lambda x, a: x * (2.0 if isinstance(a, np.float64) else 3.0),
    "is_integer": lambda x, a: x * (2.0 if hasattr(a, "is_integer") and a.is_integer() else 3.0),
    "a complex power": lambda x, a: x * abs((-8.0) ** (a / 3.0)),
    "a list": lambda x, a: [x * a, a * 2],
    "single precision": lambda x, a: x.astype(np.float32) * a,
}


@pytest.mark.filterwarnings("ignore::viewgrad.errors.NotCompiledWarning")  # for branches that change
@pytest.mark.parametrize("specialize", [False, True])
@pytest.mark.parametrize("name", AS_NUMBERS)
def test_changing_floats_are_pythons(name, specialize):
    f = AS_NUMBERS[name]
    compiled = vg.compile(f, executor="python", specialize=specialize)
    x = np.array([1.0, 2.0])
    for a in (1.0, np.nan, 2.0, 2.0, 2.0, 4.0, 3.5, 2.0):
        found, expected = compiled(x, a), f(x, a)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, err_msg=f"{a}")
            assert np.asarray(one).dtype == np.asarray(other).dtype


class Level(enum.IntEnum):
    ONE = 1


class Name(str):
    def upper(self):
        return "another"


@pytest.mark.parametrize("specialize", [False, True])
@pytest.mark.parametrize("wrap", [lambda k: k, lambda k: [k], lambda k: {"k": (k, 2)}])
@pytest.mark.parametrize(
    "values", [(1, True, np.int64(1), np.bool_(True), Level.ONE, np.int8(1)), ("a", Name("a"), np.str_("a"))]
)
def test_equal_values_of_other_types_have_programs_of_their_own(values, wrap, specialize):
    def f(x, given):
        k = given[0] if isinstance(given, list) else given["k"][0] if isinstance(given, dict) else given
        return x * len(repr(type(k))) * (2.0 if k is True else 3.0)

    compiled = vg.compile(f, executor="python", specialize=specialize)
    for _ in range(2):
        for value in (*values, *reversed(values)):
            assert compiled(vg.ones(2), wrap(value)).tolist() == f(np.ones(2), wrap(value)).tolist()


def test_numpys_integers_select_one_program():
    compiled = vg.compile(lambda x, k: x * k + vg.linalg.det(x[:, None] * x), executor="python", specialize=True)
    for _ in range(4):
        compiled(vg.ones(2), np.int64(3))
    assert len(compiled.specializations) == 1
    assert compiled.specializations[0].runs


LAYOUTS = {
    "repeated": lambda: np.broadcast_to(np.array([3.0]), (4,)),
    "strided": lambda: np.arange(8.0)[::2],
    "reversed": lambda: np.arange(4.0)[::-1],
    "sliding": lambda: np.lib.stride_tricks.sliding_window_view(np.arange(5.0), 4)[:, ::-1].T[:, 0],
    "windows": lambda: np.lib.stride_tricks.sliding_window_view(np.arange(5.0), 2),
    "columns": lambda: np.arange(12.0).reshape(4, 3)[:, :2],
    "repeated rows": lambda: np.broadcast_to(np.arange(2.0), (4, 2)),
    "repeated columns": lambda: np.broadcast_to(np.arange(4.0)[:, None], (4, 2)),
}


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("specialize", [False, True])
def test_arrays_whose_elements_share_memory_have_programs_of_their_own(wrapped, specialize):
    def f(x):
        y = np.zeros(x.shape)
        y[0] = x[0] * 2.0
        for i in range(1, len(x)):
            y[i] = y[i - 1] * 0.5 + x[i]
        return y.T.copy().reshape(-1)[::2]

    compiled = vg.compile(f, executor="python", specialize=specialize)
    for name in [*LAYOUTS, *LAYOUTS, *reversed(LAYOUTS)]:
        x = LAYOUTS[name]()
        for _ in range(3):
            found = compiled(vg.from_numpy(x) if wrapped else x)
            np.testing.assert_allclose(np.asarray(found), f(x), err_msg=name)


def test_static_arguments_are_part_of_the_program():
    def f(x, symbols, factor):
        total = 0.0
        for symbol in symbols:
            total = total + x[int(symbol)] * factor
        return total

    compiled = vg.compile(f, executor="python", static=["symbols", "factor"])
    for symbols in (np.array([0, 1, 1, 2]), np.array([2, 2, 0, 1])):
        for factor in (2.0, 3.0):
            for number in range(4):
                x = leaf(1.0 + number, 2.0, 3.0)
                assert compiled(x, symbols, factor).item() == f(x, symbols, factor).item()
    assert len(compiled.specializations) == 4
    assert all(entry.program is not None for entry in compiled.specializations), compiled.explain()
    assert "static int64[4]" in compiled.explain()


def test_a_result_that_was_detached_from_its_views():
    def f(x):
        y = x * x
        turned = y.T
        y.detach_()
        return y, turned, y[0]

    compiled = vg.compile(f, executor="python")
    for _ in range(4):
        y, turned, row = compiled(vg.ones((2, 3), requires_grad=True))
        assert [each.requires_grad for each in (y, turned, row)] == [False, True, False]
        assert np.shares_memory(y.numpy(), turned.detach().numpy())
    assert "detached" in compiled.explain()


@pytest.mark.parametrize("executor", ["python", "numba"])
def test_values_from_before_a_write_are_used(executor):
    pytest.importorskip("numba" if executor == "numba" else "numpy")

    def f(x, flags):
        total, seen = 0.0, x * 1.0
        for k in range(4):  # one constant, written to in each iteration
            q = vg.eye(3)
            for i in range(2):
                q[i] = q[i] * x[i] + q[i + 1] * x[k % 3]
                q[:, 0] = q[:, 1] * 0.5 + seen
                seen = seen + q[1]
            chosen = vg.Tensor([True, False, True])
            chosen[k % 3] = flags[0]
            total = total + (q * q).sum() + np.where(chosen, seen, 0.0).sum()
        return total

    compiled = vg.compile(f, executor=executor)
    for k in range(4):
        results = []
        for function in (compiled, f):
            x = vg.Tensor(np.array([0.3, 0.5, 0.2]) + 0.1 * k, requires_grad=True)
            value = function(x, np.array([False]))
            (first,) = vg.autograd.grad(value, x, create_graph=True)
            (plain,) = vg.autograd.grad(function(x, np.array([False])), x)
            (second,) = vg.autograd.grad((first * first).sum(), x)
            results.append([each.detach().numpy() for each in (value, first, plain, second)])
        for found, wanted in zip(*results, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-10)
    assert compiled(x, np.array([False])).grad_fn.name() == "CompiledBackward", compiled.explain()


def test_equal_results_in_separate_memory_stay_separate():

    def f(x):
        first, second = x.clone(), x.clone()
        first[...] = x * 3.0
        second[...] = first
        return x.sum(), first, second, second[...]

    compiled = vg.compile(f, executor="python")
    for run in [compiled] * 4 + [function_of(f, vg.ones(2, requires_grad=True))]:
        _, first, second, view = run(vg.ones(2, requires_grad=True))
        with vg.no_grad():
            first.mul_(2.0)
            view += 1.0
        assert first.detach().numpy().tolist() == [6.0, 6.0]
        assert second.detach().numpy().tolist() == view.detach().numpy().tolist() == [4.0, 4.0]
    assert compiled.specializations[0].program is not None, compiled.explain()


@attrs.define
class State:
    x: object
    count: int = 0


def puts_into_a_dict(given):
    given["new"] = given["x"] * 2
    return given["x"] * 3


def puts_in_the_place(given):
    given[0][0] = given[0][0] * 2
    return given[0][0] * 3


def puts_into_a_field(given):
    given.x = given.x * 2
    given.count += 1
    return given.x * 3


@pytest.mark.parametrize("of", [lambda: vg.Tensor([1.0, 2.0]), lambda: np.array([1.0, 2.0])], ids=["tensor", "array"])
@pytest.mark.parametrize(
    ("f", "made"),
    [
        (puts_into_a_dict, lambda x: {"x": x}),
        (puts_in_the_place, lambda x: ([x], "more")),
        (puts_into_a_field, State),
    ],
)
def test_items_put_into_argument_containers(f, made, of):
    expected = made(of())
    result = f(expected)
    given = made(of())
    with pytest.raises(vg.errors.TraceError, match="changes the items of its argument"):
        vg.symbolic.trace(f, given)
    compiled = vg.compile(f, executor="python")
    for _ in range(4):
        again = made(of())
        assert np.array_equal(np.asarray(compiled(again)), np.asarray(result))
        for each in (given, again):
            assert repr(each).replace("array", "Tensor") == repr(expected).replace("array", "Tensor")


def test_a_program_for_each_memory_layout():
    def tripled(x):
        y = x * 2.0
        y.ravel()[...] *= 3.0  # writes to a copy unless `y` is in row-major order
        return y, y.T, y.sum()

    rows = np.arange(6.0).reshape(2, 3)
    columns = np.asfortranarray(rows)
    within = np.arange(24.0).reshape(4, 6)[::2, :3]
    for wrap in (vg.Tensor, vg.from_numpy, np.asarray):
        compiled = vg.compile(tripled, executor="python")
        for array in (rows, rows, rows, columns, rows, columns, columns, within, within, rows.T, within):
            found, wanted = compiled(wrap(array)), tripled(wrap(array))
            for one, other in zip(found, wanted, strict=True):
                np.testing.assert_array_equal(np.asarray(one), np.asarray(other))
                assert np.asarray(one).strides == np.asarray(other).strides


def test_other_layouts_of_captured_tensors_are_noticed():
    def tripled(x):
        y = weights * x
        y.ravel()[...] *= 3.0
        return y.sum()

    weights = vg.arange(6.0).reshape(2, 3).clone()
    compiled = vg.compile(tripled, executor="python")
    x = vg.Tensor(2.0, requires_grad=True)
    for _ in range(4):
        assert compiled(x).detach().tolist() == 90
    weights = vg.Tensor(np.asfortranarray(weights.numpy()))
    assert compiled(x).detach().tolist() == tripled(x).detach().tolist() == 30


def test_flattened_matrices_are_concatenated():
    compiled = vg.compile(lambda x: np.append(x, 2 * x) @ np.arange(12.0), executor="python")
    x = vg.Tensor(np.arange(6.0).reshape(2, 3), requires_grad=True)
    for _ in range(3):
        found = compiled(x)
    assert compiled.specializations[0].fallback_reason is None, compiled.explain()
    assert found.detach().tolist() == np.append(x.detach(), 2 * x.detach()) @ np.arange(12.0)
    assert vg.autograd.grad(found, x)[0].tolist() == (np.arange(6.0) * 3 + 12).reshape(2, 3).tolist()


def test_a_function_that_branches_differently_each_call_is_rarely_retraced():
    compiled = vg.compile(lambda x: x.sum() * x[0].detach().item(), executor="python")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for v in range(30):
            assert compiled(leaf(v, 2.0)).item() == v * (v + 2.0)
        assert compiled.specializations[0].usage.traces == 1 and "further calls" in compiled.explain()
        for v in range(30, 50):
            compiled(leaf(v, 2.0))
    assert compiled.specializations[0].usage.traces == 2


def test_a_function_alternating_between_branches_keeps_a_program():
    compiled = vg.compile(lambda x: x.sum() * (2.0 if x[0] > 0 else 3.0), executor="python")
    for v in range(40):
        sign = (-1.0) ** v
        assert compiled(leaf(sign, 2.0)).tolist() == (2.0 if sign > 0 else 3.0) * (sign + 2.0)
    assert compiled.specializations[0].usage.traces <= 3 and compiled.specializations[0].fallback_reason is None


class Fit:
    def __init__(self, slope):
        self.slope = slope


def pairs(x):
    for start in range(0, 4, 2):
        yield x[start : start + 2].sum()


CREATED = {
    "an object": (lambda x: Fit(x.sum()), lambda found: found.slope),
    "an object in a list": (lambda x: [x, {"fit": Fit(x.sum())}], lambda found: found[1]["fit"].slope),
    "a closure": (lambda x: lambda: x.sum(), lambda found: found()),
    "a function with a default": (lambda x: lambda y=x: y.sum(), lambda found: found()),
    "a partial function": (lambda x: functools.partial(np.multiply, x.sum()), lambda found: found(1.0)),
    "a bound method": (lambda x: [x][0].sum, lambda found: found()),
    "a generator": (pairs, sum),
    "an iterator": (lambda x: iter([x.sum()]), next),
    "a map": (lambda x: map(abs, x), sum),
    "a set": (lambda x: (x.sum(), {1, 2}), lambda found: found[0] * found[1].pop()),
    "a class": (lambda x: type("Local.<locals>.Kept", (), {"value": x.sum()}), lambda found: found.value),
}


@pytest.mark.parametrize("name", CREATED)
@pytest.mark.filterwarnings("ignore::viewgrad.errors.NotCompiledWarning")
def test_objects_that_a_call_creates_are_created_by_every_call(name):
    function, value = CREATED[name]
    compiled = vg.compile(function, executor="python")
    for v in (1.0, 1.0, 1.0, 2.0, 3.0):
        x = leaf(v, 2.0, 3.0, 4.0)
        found, right = value(compiled(x)), value(function(x))
        assert found.tolist() == right.tolist()
        assert vg.autograd.grad(found, x)[0].tolist() == vg.autograd.grad(right, x)[0].tolist()


def test_a_graph_does_not_return_an_object_of_its_first_run():
    with pytest.raises(vg.errors.TraceError, match="the result contains a Fit"):
        vg.symbolic.trace(lambda x: Fit(x.sum()), leaf(1.0, 2.0))


def test_constants_and_arguments_in_results_are_compiled():
    def f(x, fit):
        return {"loss": (x * fit.slope).sum(), "fit": fit, "ufunc": np.sin, "dtype": x.dtype, "helper": pairs, "n": 3}

    compiled, fit = vg.compile(f, executor="python"), Fit(2.0)
    for v in (1.0, 1.0, 2.0):
        found = compiled(leaf(v, 2.0), fit)
        assert found["loss"].item() == 2 * (v + 2) and found["fit"] is fit and found["helper"] is pairs
    assert compiled.specializations[0].fallback_reason is None


def test_masks_are_assigned_in_compiled_functions():
    def without_large(x):
        kept = np.ma.array(x, mask=False)
        kept[x > 2] = np.ma.masked
        return np.ma.sum(kept * kept)

    compiled = vg.compile(without_large)
    for x in (np.array([1.0, 2.0, 3.0]), np.array([3.0, 1.0, 2.0]), np.array([1.0, 2.0, 3.0])):
        assert vg.grad(compiled)(x).tolist() == (2 * x * (x <= 2)).tolist()
