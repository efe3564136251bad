"""Source programs on arrays and on tensors: the same values, dtypes, scalars, shared memory and layouts."""

import numpy as np
import pytest

import viewgrad as vg
import viewgrad.numpy
from viewgrad.autograd import grad
from viewgrad.tensor.tensor import is_scalar

LEAVES = {
    "x": np.array([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75], [3.0, 1.0, 0.1]]),
    "columns": np.asfortranarray([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]]),
    "v": np.array([0.3, 1.1, -0.7]),
    "z": np.array([[1 + 2j, -0.5j], [0.25, -1 + 1j]]),
    "s": np.array(0.7),
    "empty": np.zeros((2, 0, 3)),
}
TEXTS = [
    # in place, seen by other views
    "a = x * 1; b = a[...]; b @= x",
    "a = v * 1; b = a.ravel(); b @= x",
    "a = z * 1; b = a.T; a @= a",
    # whether arrays share memory
    "a = x * 1; b = a.conj(); b += 1",
    "a = x * 1; b = a.conjugate(); b[0] = 1",
    "a = z * 1; b = a.conj(); b += 1",
    "a = np.conj(x); b = a.ravel(); b += 1",
    "a = columns.copy(); b = a.ravel(); b += 1",
    "a = columns.copy('F'); b = a.ravel(); b += 1",
    "a = columns.copy('K'); b = a.T.ravel(); b += 1",
    "a = columns[:, ::2].copy('A'); b = a.T.ravel(); b += 1",
    "a = np.copy(columns); b = a.T.ravel(); b += 1",
    "a = np.meshgrid(v, v)[0]; b = a.ravel(); b += 1",
    "a = v[:1] * 1; b = np.meshgrid(a, a)[0]; b += 1",
    "a = np.select([columns > 0, columns < -0.9], [columns, v], default=0.5); b = a.ravel(); b += 1",
    "a = np.delete(columns, 0, axis=-1); b = a.ravel('F'); b += 1",
    "a = np.delete(columns, [1], axis=0); b = a.ravel(); b += 1",
    "a = np.gradient(columns, axis=1); b = a.ravel('F'); b += 1",
    "a = np.gradient(x.T)[1]; b = a.ravel(); b += 1",
    "a = (x * 1)[:, None].swapaxes(0, 1).flatten('K'); b = columns[None].swapaxes(0, 1).flatten('K')",
    "a = np.stack([x, x]).transpose(2, 0, 1); b = a.ravel('K'); b += 1; c = a[..., ::-1].flatten('K')",
    "a = np.stack([x, -x]).diagonal().flatten('K'); b = columns.flatten('A')",
    "a = np.broadcast_to(x, (2, 3, 3)).flatten('K'); b = np.broadcast_to(columns, (2, 2, 3)).flatten('K')",
    "a = np.insert(columns, 1, 0.5, axis=0); b = a.ravel('F'); b += 1",
    # arrays without dimensions, and scalars
    "a = s.astype(complex); b = a; b += 1",
    "a = s * 1; b = a.astype(complex); c = b; c += 1",
    "a = np.where(True, s, 0.5); b = a; b += 1",
    "a = np.select([s > 0], [s], default=0.5); b = a; b += 1",
    "a = np.tensordot(x, x); b = a; b *= 2",
    "a = np.inner(v, v); b = a; b *= 2",
    "a = np.roll(s, 1); b = a; b *= 2",
    "a = np.pad(s, 1); b = a; b *= 2",
    "a = x.std(where=x > 0); b = a; b *= 2",
    "a = s * 1.0; b = a.conj(); b += 1",
    "a = np.median(s, keepdims=True); b = a; b *= 2; c = np.median(s)",
    # writes
    "a = empty * 1; np.putmask(a, np.zeros((2, 0, 3), bool), x)",
    "a = x * 1; np.putmask(a, a > 0, v)",
    "a = x * 1; np.putmask(a, a > 0, [7.0])",
    "a = x * 1; np.putmask(a, a > 0, x.T[:2])",
    "a = s.copy(); a.put([0], 0.3)",
    "a = s.copy(); np.place(a, np.array(True), [2.0, 3.0])",
    "a = s.copy(); a.flat[0:1] = [0.1]; a.flat[-1] *= 2",
    # dtypes
    "a = np.percentile(x.astype(np.float32), [10, 35]); b = np.percentile(x.astype(np.float32), 35)",
    "a = np.quantile(x.astype(np.float32), np.array([0.1, 0.35])); b = np.nanpercentile(v.astype(np.float16), 30.0)",
    "a = np.nanstd(z); b = np.nanvar(z, axis=0, ddof=1)",
    "a = np.average(z, weights=np.abs(z.real).astype(np.float16) + np.float16(0.5))",
    "a = x.astype(np.float32).mean(where=x > 0); b = np.var(x.astype(np.float16), where=x > 0)",
    # the rest
    "a = np.partition(columns, 1, axis=1); b = a.reshape(-1, order='A')",
    "a = np.flip(s); a += 1; b = np.cross(v[:2], v[1:])",
    "a = np.take(s, [0, 0], axis=0); b = s.take([[0]], 0)",
    "a = np.lib.stride_tricks.sliding_window_view(x, 2, axis=1)",
    "a = np.max(z, axis=1, initial=0.4, where=np.array([[True, False], [True, True]]))",
    "a = np.insert(v, 1, v[:1, None])",
    "a = np.insert(x, 1, v, axis=0); b = np.insert(x, 1, 5.0, axis=1)",
    "a = empty.view(complex) if empty.shape[-1] % 2 == 0 else empty; b = (empty * 1j).view(float)",
    "a = np.convolve(s, v); b = np.convolve(v, s)",
    "a = np.compress([True, False, True], empty[:, :, :2], axis=2)",
    "a = np.take(x, [0, 5], axis=1, mode='clip'); b = np.take(x, [-7, 4], mode='wrap')",
]
# programs whose arrays are created by functions that do not dispatch on tensors, in viewgrad.numpy
CREATED = [
    "a = np.asfortranarray(x); b = a.reshape(-1); b += 1; c = a.ravel('F'); c *= 2",
    "a = np.array(x, order='F'); b = a.ravel('K'); b += 1; c = np.zeros_like(a).ravel('K'); c += 1",
    "a = np.asarray(x * 1, order='F'); b = a.reshape((-1,), order='F'); b += 1",
    "a = np.array(columns, order='C'); b = a.ravel(); b += 1; c = np.array(columns[:, ::2], order='A')",
    "a = np.array(columns, copy=None, order='A') * 1; b = np.asarray(x.T * 1, order='A').ravel('K'); b += 1",
    "a = np.require(x * 1, requirements='F'); b = a.T.reshape(-1); b += 1; c = np.require(a, requirements=['C'])",
    "a = x * 1; b = np.require(a[:2], requirements=['O']); b += 1; c = a[:2] * 1",
    "a = x.astype(np.float32, order='F'); b = a.ravel('K'); b += 1; c = (x * 1).astype(float, copy=False, order='F')",
    "a = columns.astype(float, order='C'); b = a.ravel(); b += 1; c = columns.astype(complex, order='A').ravel('K')",
    "a = np.add(x, 1, order='F'); b = a.ravel('K'); b += 1; c = np.multiply(columns, 2, order='C').ravel(); c += 1",
    "a = np.maximum(x, 0.3, order='F'); b = np.add(columns, columns, order='A').ravel('K'); b += 1",
    "a = np.full((2, 3), s, order='F'); b = a.T.reshape(-1); b += 1; c = np.copy(columns, order='C').ravel(); c += 1",
]


def run(text, leaves, namespace=np):
    names = {"np": namespace, **leaves}
    exec(text, names)
    return {name: names[name] for name in "abc" if name in names}


def total(results):
    terms = (np.sum(value * np.cos(np.arange(value.size)).reshape(value.shape)).real for value in results.values())
    return sum(terms)


def differences(text, direction):
    ends = []
    for sign in (1, -1):
        moved = {}
        for name, leaf in LEAVES.items():
            moved[name] = leaf.copy(order="K")
            moved[name][...] += sign * 1e-5 * direction[name]
        ends.append(total(run(text, moved)))
    return (ends[0] - ends[1]) / 2e-5


def steps(array):
    return [step for step, extent in zip(array.strides, array.shape) if extent > 1]


@pytest.mark.parametrize(("text", "namespace"), [(text, np) for text in TEXTS] + [(text, vg.numpy) for text in CREATED])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tensors_behave_like_arrays(text, namespace):
    expected = run(text, {name: leaf.copy(order="K") for name, leaf in LEAVES.items()})
    leaves = {name: vg.Tensor(leaf.copy(order="K"), requires_grad=True) for name, leaf in LEAVES.items()}
    found = run(text, leaves, namespace)
    for name, array in expected.items():
        tensor = found[name]
        assert tensor.dtype == array.dtype and tensor.shape == array.shape
        assert is_scalar(tensor) == (not isinstance(array, np.ndarray))
        np.testing.assert_allclose(tensor.detach().numpy(), array, rtol=1e-2 if array.dtype.itemsize < 8 else 1e-7)
        if isinstance(array, np.ndarray) and array.size:
            assert steps(tensor) == steps(array)
        for other in expected:
            shared = np.shares_memory(array, expected[other]) or other == name
            assert (tensor is found[other] or np.shares_memory(tensor._array, found[other]._array)) == shared
    rng = np.random.default_rng(0)
    direction = {name: rng.uniform(0.5, 1.0, leaf.shape).astype(leaf.dtype) for name, leaf in LEAVES.items()}
    slopes = grad(total(found), list(leaves.values()), materialize_grads=True)
    along = sum((slope.numpy().conj() * direction[name]).real.sum() for name, slope in zip(leaves, slopes))
    if "float16" not in text and "float32" not in text:  # too coarse for differences
        np.testing.assert_allclose(along, differences(text, direction), rtol=1e-6, atol=1e-6)


def test_an_in_place_product_has_the_shape_of_its_target():
    a = vg.ones((2, 3))
    with pytest.raises(ValueError, match=r"@= cannot write a product of shape \(2, 2\)"):
        a @= vg.ones((3, 2))
    with pytest.raises(TypeError, match="cannot be written to out= of float64"):
        a @= vg.ones((3, 3), dtype=complex)
    s = vg.ones(3).sum()
    with pytest.raises(ValueError):
        s @= 2.0
