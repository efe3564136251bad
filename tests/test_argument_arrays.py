"""Arguments that are arrays: one array passed twice, and arrays that tensors do not support."""

import numpy as np
import pytest

import viewgrad as vg


def scaled(s, a, b):
    return s * (a * b).sum() * (2.0 if a is b else 1.0)


def written(s, a, b):
    b[0] = 5.0
    return s * (a * b).sum()


TRANSFORMS = [vg.value_and_grad, vg.jacfwd, vg.jacrev]
COMPILED = [lambda f: f, vg.compile, lambda f: vg.compile(f, specialize=True)]


@pytest.mark.parametrize("compiled", COMPILED, ids=["eager", "source", "trace"])
@pytest.mark.parametrize("transform", TRANSFORMS, ids=lambda transform: transform.__name__)
def test_one_array_passed_twice_remains_one_object(transform, compiled):
    a, other = np.ones(3), np.ones(3)
    derivative = transform(compiled(scaled))
    for b, expected in ((other, 3.0), (other, 3.0), (a, 6.0), (a, 6.0), (other, 3.0)):
        found = derivative(2.0, a, b)
        np.testing.assert_allclose(found[1] if transform is vg.value_and_grad else found, expected)
        assert scaled(2.0, a, b) == compiled(scaled)(2.0, a, b) == 2.0 * expected
    np.testing.assert_allclose(vg.grad(compiled(scaled))(2.0, a, b=a), 6.0)


def test_a_write_to_an_array_passed_twice_changes_both_arguments():
    assert vg.value_and_grad(written)(2.0, *[np.arange(3.0)] * 2) == (written(2.0, *[np.arange(3.0)] * 2), 30.0)


def test_one_array_in_two_places_of_a_tree_remains_one_object():
    a = np.ones(2)

    def f(s, tree):
        return s * (2.0 if tree["a"] is tree["b"][0] else 1.0)

    for compiled in COMPILED:
        assert vg.value_and_grad(compiled(f))(3.0, {"a": a, "b": [a]}) == (6.0, 2.0)


@pytest.mark.parametrize("is_leaf", [False, True])
def test_checkpoint_of_one_tensor_passed_twice(is_leaf):
    t = vg.Tensor([1.0, 2.0, 3.0], requires_grad=True)
    x = t if is_leaf else t * 1.0
    loss = vg.checkpoint(scaled)(1.0, x, x)
    loss.backward()
    assert loss.item() == 28.0
    np.testing.assert_array_equal(t.grad.numpy(), [4.0, 8.0, 12.0])


RECORDS = np.array([(1.0, 4), (2.0, 5)], dtype=[("mass", float), ("count", int)])
UNSUPPORTED = {
    "structured": RECORDS,
    "record": RECORDS.view(np.recarray),
    "object": np.array([1.0, None, "a"], object),
    "string": np.array(["a", "bb"]),
    "bytes": np.array([b"a"]),
    "0-d string": np.array("a"),
    "datetime": np.array(["2020-01-01"], "M8[D]"),
    "timedelta": np.array([3], "m8[s]"),
    "byte order": np.arange(3.0).astype(">f8"),
    "masked": np.ma.masked_array([1.0, 2.0], [0, 1]),
    "subclass": np.ones(2).view(type("Own", (np.ndarray,), {})),
}


@pytest.mark.parametrize("compiled", COMPILED, ids=["eager", "source", "trace"])
@pytest.mark.parametrize("name", UNSUPPORTED)
def test_arrays_that_tensors_do_not_support_are_passed_unchanged(name, compiled):
    given = UNSUPPORTED[name]

    def f(x, table):
        return x * x * (2.0 if type(table) is type(given) and table.dtype == given.dtype else 1.0)

    def g(x, tree):
        return f(x, tree["table"])

    for function, argument in ((f, given), (g, {"table": given})):
        run = compiled(function)
        for _ in range(2):
            assert run(3.0, argument) == 18.0
            assert vg.value_and_grad(run)(3.0, argument) == (18.0, 12.0)
    np.testing.assert_allclose(vg.vmap(compiled(f), in_axes=(0, None))(np.array([1.0, 2.0]), given), [2.0, 8.0])


@pytest.mark.parametrize("compiled", COMPILED, ids=["eager", "source", "trace"])
def test_columns_of_a_structured_array(compiled):
    def f(x, table):
        total = 0.0
        for row in table:
            total += row["mass"] * x
        return total + (table["mass"] * x**2).sum() + table[table["count"] > 4]["mass"].sum()

    value, gradient = vg.value_and_grad(compiled(f))(2.0, RECORDS)
    assert (value, gradient) == (f(2.0, RECORDS), 3.0 + 3.0 * 2 * 2.0)


def test_explain_names_the_array_that_is_not_supported():
    run = vg.compile(lambda x, names: x * len(names), specialize=True)
    run(vg.Tensor(2.0), np.array(["a", "b"]))
    assert "an argument is an array of <U1, which tensors do not support" in str(run.explain())


BIG_ENDIAN = np.arange(1.0, 4.0).astype(">f8")
INDICES = np.arange(3).astype(">i8")


@pytest.mark.parametrize(
    "f",
    [
        lambda x: (x * BIG_ENDIAN).sum() + (BIG_ENDIAN - x).prod(),
        lambda x: BIG_ENDIAN @ (x * np.ones(3)),
        lambda x: np.concatenate([BIG_ENDIAN, np.ones(2) * x]).prod(),
        lambda x: np.where(BIG_ENDIAN > 1.5, x, BIG_ENDIAN).prod(),
        lambda x: np.interp(x, BIG_ENDIAN, BIG_ENDIAN**2),
        lambda x: (np.ones(3) * x)[INDICES].prod(),
        lambda x: np.multiply(x, BIG_ENDIAN, out=np.zeros(3)).prod(),
        lambda x: x * BIG_ENDIAN[1] + (x * np.array([1, 2], ">i4")).sum(),
    ],
)
@pytest.mark.parametrize("compiled", COMPILED, ids=["eager", "source", "trace"])
def test_operands_of_the_other_byte_order(f, compiled):
    step = 1e-6
    expected = f(1.3), (f(1.3 + step) - f(1.3 - step)) / (2 * step)
    np.testing.assert_allclose(vg.value_and_grad(compiled(f))(1.3), expected, rtol=1e-8)


def test_arange_with_a_step_by_keyword():
    def f(step):
        return (np.arange(5, step=step) ** 2).sum() + np.arange(stop=5, step=step).sum()

    value, gradient = vg.value_and_grad(f)(0.7)
    np.testing.assert_allclose((value, gradient), (f(0.7), (f(0.7 + 1e-6) - f(0.7 - 1e-6)) / 2e-6), rtol=1e-6)
    np.testing.assert_array_equal(vg.adopt(lambda: np.arange(stop=4))().numpy(), np.arange(stop=4))
