"""Edge cases of operators that generated tests do not cover: phases, degenerate matrices, missing values, state."""

import numpy as np
import pytest
from leaves import leaf_of

import viewgrad as vg
from viewgrad.autograd import grad, gradcheck, gradgradcheck
from viewgrad.autograd.modes import forward_ad
from viewgrad.errors import DifferentiabilityError
from viewgrad.operators.define import OPERATORS
from viewgrad.tensor.tensor import is_scalar


def complex_matrix(*shape, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


def adjoint(a):
    return np.conj(a.mT)


# -- decompositions of complex matrices, up to phases -----------------------------------------------------------------


def projectors(vectors):
    """Return the projectors on vectors in columns, which do not depend on their phases."""
    return vectors.mT[..., :, None] * np.conj(vectors.mT)[..., None, :]


@pytest.mark.parametrize(
    "of",
    [
        lambda u, s, vh: s,
        lambda u, s, vh: projectors(u),
        lambda u, s, vh: projectors(adjoint(vh)),
        lambda u, s, vh: (u * (s**3)[..., None, :]) @ vh,
        lambda u, s, vh: u @ vh,
    ],
)
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 3)])
def test_svd_of_complex_matrices(of, shape):
    a = leaf_of(complex_matrix(*shape))
    assert gradcheck(lambda a: of(*np.linalg.svd(a, full_matrices=False)), a)
    assert gradgradcheck(lambda a: of(*np.linalg.svd(a, full_matrices=False)), a, atol=1e-4)


@pytest.mark.parametrize(
    "of", [lambda w, v: w, lambda w, v: projectors(v), lambda w, v: (v * np.exp(w)[..., None, :]) @ adjoint(v)]
)
@pytest.mark.parametrize("triangle", ["L", "U"])
def test_eigh_of_complex_matrices(of, triangle):
    a = leaf_of(complex_matrix(3, 3) + np.diag([0, 3, 6]))
    assert gradcheck(lambda a: of(*np.linalg.eigh(a, triangle)), a)
    assert gradgradcheck(lambda a: of(*np.linalg.eigh(a, triangle)), a, atol=1e-4)


@pytest.mark.parametrize("of", [lambda a: np.linalg.svd(a)[0].real.sum(), lambda a: np.linalg.eigh(a)[1].real.sum()])
def test_losses_that_depend_on_eigenvector_phases_are_refused(of):
    loss = of(leaf_of(complex_matrix(3, 3)))
    with pytest.raises(DifferentiabilityError, match="depends on the phases"):
        loss.backward()


@pytest.mark.parametrize("of", [lambda a: np.linalg.svd(a)[0], lambda a: np.linalg.eigh(a)[1]])
def test_degenerate_eigenvectors_have_no_derivative(of):
    with pytest.raises(DifferentiabilityError, match="values are equal"):
        of(leaf_of(np.eye(3)))[0, 1].backward()


@pytest.mark.parametrize("of", [lambda a: np.linalg.svd(a)[0], lambda a: np.linalg.eigh(a)[1]])
def test_values_that_differ_by_rounding_alone_are_equal(of):
    """The eigenvalues of a projection are an example: dividing by their differences would give huge numbers."""
    basis = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0][:3]
    centred = basis - basis.mean(1, keepdims=True)
    with pytest.raises(DifferentiabilityError, match="values are equal"):
        of(leaf_of(centred @ centred.T))[0, 1].backward()
    near = leaf_of(np.diag([1.0, 1.0 + 1e-9, 2.0]) + 1e-10)
    of(near)[0, 1].backward()
    assert np.isfinite(near.grad.numpy()).all()


def leading_part(of, a):
    """Return the part of a matrix with the greatest eigenvalue or singular value and its vectors."""
    if of == "eigh":
        values, vectors = np.linalg.eigh((a + adjoint(a)) / 2)
        return vectors[..., -1:] @ (values[..., -1:, None] * adjoint(vectors[..., -1:]))
    if of == "eig":
        values, vectors = np.linalg.eig((a + adjoint(a)) / 2)
        first = np.asarray(values if isinstance(values, np.ndarray) else values.detach()).real.argmax()
        return vectors[..., first, None] * values[..., first]
    left, values, right = np.linalg.svd(a, full_matrices=False)
    return (left[..., :1] * values[..., None, :1]) @ right[..., :1, :]


@pytest.mark.parametrize("of", ["eigh", "eig", "svd", "svd of a stack", "svd of complex ones", "eigh of complex ones"])
@pytest.mark.parametrize("zero", [0.0, 1e-17])
def test_unused_eigenvectors_may_be_degenerate(of, zero):
    """Principal components of fewer samples than features are an example."""
    rng = np.random.default_rng(0)
    column = rng.normal(size=(5, 1)) + (1j * rng.normal(size=(5, 1)) if "complex" in of else 0)
    array = column @ adjoint(column if of != "svd" else rng.normal(size=(3, 1))) if zero else np.diag([3.0, 0, 0, 0, 0])
    if of.endswith("stack"):
        array = np.stack([array, 2 * array])
    weights = rng.normal(size=array.shape) if of != "eig" else rng.normal(size=5)
    kind = of.split()[0]

    def loss(a):
        return (np.abs(leading_part(kind, a)) ** 2 * weights).sum()

    a = leaf_of(array.astype(complex) if "complex" in of else array)
    loss(a).backward()
    along = rng.normal(size=a.shape) + (1j * rng.normal(size=a.shape) if "complex" in of else 0)
    slope = (loss(array + 1e-6 * along) - loss(array - 1e-6 * along)) / 2e-6
    np.testing.assert_allclose((a.grad.numpy().conj() * along).real.sum(), slope, rtol=1e-6)


def test_repeated_eigenvalues_have_a_gradient():
    for of in (np.linalg.svdvals, np.linalg.eigvalsh, lambda a: np.linalg.svd(a)[1], lambda a: np.linalg.eigh(a)[0]):
        a = leaf_of(np.eye(3))
        of(a).sum().backward()
        np.testing.assert_allclose(a.grad, np.eye(3), atol=1e-15)


def test_svd_with_full_matrices():
    a = leaf_of(np.random.default_rng(0).standard_normal((4, 2)))
    u, s, _ = np.linalg.svd(a)
    assert u.shape == (4, 4)
    (wanted,) = grad((np.linalg.svd(a, full_matrices=False)[0][:, 0] ** 3).sum() + s.sum(), a, retain_graph=True)
    (found,) = grad((u[:, 0] ** 3).sum() + s.sum(), a, retain_graph=True)
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12)
    with pytest.raises(DifferentiabilityError, match="full_matrices=False"):
        u[:, 3].sum().backward()
    assert np.linalg.svd(a, compute_uv=False).grad_fn.name() == "SvdvalsBackward"
    with pytest.raises(np.linalg.LinAlgError, match="square"):
        np.linalg.svd(a, hermitian=True)


def test_tangent_of_a_gradient_that_is_zero_reaches_it():
    """Forward over reverse: a gradient of vectors that happens to be zero, but has a tangent."""
    matrix = np.diag([3.0, 2.0, 1.0]) + 0.1

    def gradient(t):
        a = leaf_of(matrix)
        w, v = np.linalg.eigh(a)
        return grad(w[0] + (v[:, 0] * (t - 1.0)).sum() * 2.0, a, create_graph=True)[0]

    with forward_ad.dual_level():
        tangent = forward_ad.unpack_dual(gradient(forward_ad.make_dual(vg.Tensor(1.0), vg.Tensor(1.0)))).tangent
    step = 1e-6
    above, below = gradient(vg.Tensor(1 + step)).detach().numpy(), gradient(vg.Tensor(1 - step)).detach().numpy()
    difference = (above - below) / (2 * step)
    np.testing.assert_allclose(tangent.detach(), difference, atol=1e-7)


# -- singular matrices ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "matrix",
    [
        [[1.0, 2.0], [2.0, 4.0]],
        [[0.0, 0.0], [0.0, 0.0]],
        [[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 0.0, 1.0]],
        [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0]],
    ],
)
def test_determinant_of_a_singular_matrix(matrix):
    matrix = np.array(matrix)
    a = leaf_of(matrix)
    np.linalg.det(a).backward()
    n = len(matrix)
    cofactors = [
        [(-1) ** (i + j) * np.linalg.det(np.delete(np.delete(matrix, i, 0), j, 1)) for j in range(n)] for i in range(n)
    ]
    np.testing.assert_allclose(a.grad, cofactors, atol=1e-12)


def test_small_cofactors_beside_large_ones():
    a = leaf_of(np.array([[1e8, 1.0], [1.0, 1e-9]]))
    np.linalg.det(a).backward()
    np.testing.assert_allclose(a.grad, [[1e-9, -1.0], [-1.0, 1e8]], rtol=1e-12)


def test_least_squares_of_vectors_and_residuals():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((5, 2)), rng.standard_normal(5)
    x, residuals, rank, values = np.linalg.lstsq(leaf_of(a), leaf_of(b))
    wanted = np.linalg.lstsq(a, b)
    for found, each in zip((x, residuals, rank, values), wanted):
        np.testing.assert_allclose(found.detach(), each)
    assert rank.dtype.kind == "i" and not rank.requires_grad
    tall, wide = leaf_of(complex_matrix(4, 2)), leaf_of(complex_matrix(2, 4))
    assert gradcheck(lambda a, b: np.linalg.lstsq(a, b)[:2], (tall, leaf_of(complex_matrix(4, seed=1))))
    assert gradcheck(lambda a, b: np.linalg.lstsq(a, b)[0], (wide, leaf_of(complex_matrix(2, 3, seed=1))))


def test_only_the_triangle_that_is_read_has_a_gradient():
    a = leaf_of(np.diag([4.0, 5.0, 6.0]) + 1)
    np.linalg.cholesky(a).sum().backward()
    assert ((a.grad.numpy() != 0) == np.tri(3)).all()
    a = leaf_of(np.diag([4.0, 5.0, 6.0]) + 1)
    (np.linalg.eigh(a, "U")[0] ** 2).sum().backward()
    assert ((a.grad.numpy() != 0) == np.tri(3).T).all()


# -- missing values, ties and kinks -----------------------------------------------------------------------------------


def test_missing_values_have_no_gradient():
    x = np.array([[1.0, np.nan, 5.0, 2.0], [np.nan, np.nan, 3.0, 4.0]])
    expected = {
        np.nansum: [[1, 0, 1, 1], [0, 0, 1, 1]],
        np.nanmean: [[1 / 3, 0, 1 / 3, 1 / 3], [0, 0, 0.5, 0.5]],
        np.nanmedian: [[0, 0, 0, 1], [0, 0, 0.5, 0.5]],
        lambda a, axis: np.nanquantile(a, 0.25, axis=axis): [[0.5, 0, 0, 0.5], [0, 0, 0.75, 0.25]],
    }
    for function, wanted in expected.items():
        a = leaf_of(x)
        function(a, axis=1).sum().backward()
        np.testing.assert_allclose(a.grad, wanted)
    a = leaf_of([1.0, np.nan, np.inf, -np.inf])
    result = np.nan_to_num(a, nan=7.0)
    np.testing.assert_array_equal(result.detach(), np.nan_to_num(a.detach().numpy(), nan=7.0))
    result.sum().backward()
    assert a.grad.tolist() == [1.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    "function",
    [np.nanmax, np.nanmin, np.nanprod, np.nanvar, np.nanstd, np.nancumsum, np.nancumprod, np.nanargmax, np.nanargmin],
    ids=lambda function: function.__name__,
)
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_reductions_that_skip_missing_values(function, axis):
    x = np.random.default_rng(0).standard_normal((3, 4))
    there = np.array([[True, False, True, True], [True, True, False, True], [False, True, True, True]])
    holed = np.where(there, x, np.nan)
    np.testing.assert_allclose(function(leaf_of(holed), axis=axis).detach(), function(holed, axis=axis))
    if function not in (np.nanargmax, np.nanargmin):
        assert gradcheck(lambda x: function(np.where(there, x, np.nan), axis=axis), leaf_of(x))


def test_equal_values():
    cases = [
        (lambda a: np.ptp(a), [3.0, 1.0, 3.0, 1.0], [0.5, -0.5, 0.5, -0.5]),
        (lambda a: np.median(a), [2.0, 2.0, 2.0], [0.0, 1.0, 0.0]),
        (lambda a: vg.topk(a, 1)[0].sum(), [2.0, 3.0, 3.0], [0.0, 1.0, 0.0]),
        (lambda a: vg.kthvalue(a, 1)[0], [2.0, 1.0, 1.0], [0.0, 1.0, 0.0]),
        (lambda a: vg.cummax(a, 0)[0].sum(), [1.0, 3.0, 3.0, 2.0], [1.0, 1.0, 2.0, 0.0]),
        (lambda a: vg.cummin(a, 0)[0].sum(), [3.0, 1.0, 1.0, 2.0], [1.0, 1.0, 2.0, 0.0]),
        (lambda a: vg.max_pool1d(a, 2)[0].sum(), [3.0, 3.0, 1.0, 2.0], [1.0, 0.0, 0.0, 1.0]),
    ]
    for function, values, wanted in cases:
        a = leaf_of(values)
        function(a).backward()
        assert a.grad.tolist() == wanted


@pytest.mark.parametrize(
    ("function", "places", "wanted"),
    [
        (lambda a: vg.leaky_relu(a, 0.25), [0.0], [0.25]),
        (lambda a: vg.hardtanh(a), [-1.0, 1.0], [0.0, 0.0]),
        (lambda a: vg.relu6(a), [0.0, 6.0], [0.0, 0.0]),
        (lambda a: vg.hardsigmoid(a), [-3.0, 3.0], [0.0, 0.0]),
        (lambda a: vg.hardswish(a), [-3.0, 3.0], [0.0, 1.0]),
        (lambda a: vg.softshrink(a), [-0.5, 0.5], [0.0, 0.0]),
        (lambda a: vg.hardshrink(a), [-0.5, 0.5], [0.0, 0.0]),
        (lambda a: vg.threshold(a, 1.0, 5.0), [1.0], [0.0]),
        (lambda a: vg.elu(a, 0.5), [0.0], [0.5]),
        (lambda a: np.interp(a, [0.0, 1.0, 3.0], [0.0, 1.0, 5.0]), [0.0, 1.0, 3.0, 4.0], [1.0, 2.0, 2.0, 0.0]),
    ],
)
def test_kinks(function, places, wanted):
    a = leaf_of(places)
    function(a).sum().backward()
    np.testing.assert_allclose(a.grad, wanted)


def test_sinc_at_zero_to_any_order():
    x = leaf_of(np.zeros(1))
    y = np.sinc(x)
    for wanted in (0.0, -(np.pi**2) / 3, 0.0, np.pi**4 / 5):
        (y,) = grad(y.sum(), x, create_graph=True)
        np.testing.assert_allclose(y.detach(), wanted, atol=1e-13)


def test_step_has_the_gradient_of_its_value_at_zero():
    x, h = leaf_of([-1.0, 0.0, 2.0]), leaf_of([5.0, 6.0, 7.0])
    np.heaviside(x, h).sum().backward()
    assert x.grad.tolist() == [0.0, 0.0, 0.0]
    assert h.grad.tolist() == [0.0, 1.0, 0.0]


# -- state ------------------------------------------------------------------------------------------------------------


def test_running_statistics_are_updated_in_place():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((6, 3, 2)) * 2 + 1
    mean, var = vg.zeros(3), vg.ones(3)
    seen = mean.detach()
    weight, bias = leaf_of(np.ones(3)), leaf_of(np.zeros(3))
    result = vg.batch_norm(vg.Tensor(x), mean, var, weight, bias, training=True, momentum=0.25)
    np.testing.assert_allclose(result.detach().numpy().mean(axis=(0, 2)), 0, atol=1e-12)
    np.testing.assert_allclose(seen, 0.25 * x.mean(axis=(0, 2)))
    np.testing.assert_allclose(var, 0.75 + 0.25 * x.var(axis=(0, 2), ddof=1))
    assert mean._version == var._version == 1
    assert not mean.requires_grad
    calm = vg.batch_norm(vg.Tensor(x), mean, var, weight, bias)
    np.testing.assert_allclose(
        calm.detach(), (x - mean.numpy()[:, None]) / np.sqrt(var.numpy() + 1e-5)[:, None], rtol=1e-12
    )
    assert mean._version == 1
    with pytest.raises(ValueError, match="more than one value"):
        vg.batch_norm(vg.ones(1, 3), mean, var, training=True)
    with pytest.raises(ValueError, match="running_mean"):
        vg.batch_norm(vg.ones(2, 3))


def test_gradients_survive_updates_of_running_statistics():
    x = leaf_of(np.random.default_rng(0).standard_normal((4, 2)))
    mean, var = vg.zeros(2), vg.Tensor([4.0, 9.0])
    calm = vg.batch_norm(x, mean, var, eps=0.0)
    vg.batch_norm(x, mean, var, training=True)  # overwrites saved values
    calm.sum().backward()
    np.testing.assert_allclose(x.grad, np.broadcast_to([1 / 2, 1 / 3], (4, 2)))


def test_dropout_draws_from_its_generator_only():
    x = leaf_of(np.ones((100, 50)))
    first = vg.dropout(x, 0.2, generator=np.random.default_rng(3))
    again = vg.dropout(x, 0.2, generator=np.random.default_rng(3))
    np.testing.assert_array_equal(first.detach(), again.detach())
    kept = first.detach().numpy() != 0
    assert 0.75 < kept.mean() < 0.85
    first.sum().backward()
    np.testing.assert_allclose(x.grad, kept / 0.8)
    assert vg.dropout(x, training=False) is x
    with pytest.raises(TypeError, match="generator"):
        vg.dropout(x)


def test_cross_entropy():
    rng = np.random.default_rng(0)
    logits, classes, weight = rng.standard_normal((5, 3)), np.array([0, 2, 1, 1, -100]), np.array([1.0, 2.0, 0.5])
    logarithms = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    losses = -logarithms[np.arange(4), classes[:4]]
    weights = weight[classes[:4]]
    wanted = {
        (None, "mean"): losses.mean(),
        (None, "sum"): losses.sum(),
        ("w", "mean"): (losses * weights).sum() / weights.sum(),
        ("w", "sum"): (losses * weights).sum(),
    }
    for (w, reduction), value in wanted.items():
        given = None if w is None else weight
        options = {"weight": given, "reduction": reduction}
        assert gradcheck(lambda x, options=options: vg.cross_entropy(x, classes, **options), leaf_of(logits))
        found = vg.cross_entropy(vg.Tensor(logits), classes, given, reduction=reduction)
        np.testing.assert_allclose(found, value)
    smooth = vg.cross_entropy(vg.Tensor(logits[:4]), classes[:4], label_smoothing=0.3)
    np.testing.assert_allclose(smooth, 0.7 * losses.mean() + 0.3 * -logarithms[:4].mean())
    probabilities = rng.dirichlet(np.ones(3), 5)
    found = vg.cross_entropy(vg.Tensor(logits), vg.Tensor(probabilities))
    np.testing.assert_allclose(found, -(probabilities * logarithms).sum(1).mean())


# -- NumPy's and SciPy's spellings ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "program",
    [
        lambda a: np.vecdot(a, a, axis=0),
        lambda a: np.linalg.vecdot(a, a),
        lambda a: np.linalg.trace(a[None], offset=1),
        lambda a: np.cross(a, a[::-1], axis=0),
        lambda a: np.cross(a, a[::-1], axisa=0, axisb=1, axisc=0),
        lambda a: np.linalg.cross(a, a[::-1]),
        lambda a: np.diff(a, prepend=0.0),
        lambda a: np.diff(a, axis=0, append=a[:1]),
        lambda a: np.percentile(a, [20, 50], axis=1),
        lambda a: np.quantile(a, 0.3, method="lower"),
        lambda a: np.nanpercentile(a, 40),
        lambda a: np.cov(a),
        lambda a: np.cov(a, rowvar=False, ddof=0),
        lambda a: np.corrcoef(a),
        lambda a: np.average(a, axis=0, weights=np.array([1.0, 2.0, 3.0])),
        lambda a: np.average(a, axis=1, weights=a),
        lambda a: np.diag(a[0]),
        lambda a: np.diag(a, 1),
        lambda a: np.fft.rfft(a, 5, norm="ortho"),
        lambda a: np.fft.fftn(a, axes=(0,)),
        lambda a: np.nan_to_num(a, copy=True, nan=1.0),
        lambda a: np.trapezoid(a, dx=0.5, axis=0),
        lambda a: np.convolve(a[0], a[1], "same"),
        lambda a: np.linalg.matrix_power(a, 2),
        lambda a: np.bincount(np.array([0, 2, 2]), a[0]),
        lambda a: np.bincount(np.array([0, 2, 2]), weights=a[0], minlength=4),
        lambda a: np.gradient(a)[1],
        lambda a: np.gradient(a, 0.5, axis=0),
        lambda a: np.gradient(a, 0.3, edge_order=2)[0],
        lambda a: np.gradient(a, np.array([0.0, 0.5, 2.0]), axis=1),
        lambda a: np.gradient(a, 0.3, np.array([0.0, 0.5, 2.0]), edge_order=2)[1],
        lambda a: np.ediff1d(a),
        lambda a: np.unwrap(a * 9),
        lambda a: np.fft.hfft(a),
        lambda a: np.fft.hfft(a, 5, 0, "ortho"),
        lambda a: np.fft.ihfft(a),
        lambda a: np.linalg.multi_dot([a[:2], a.T, a[:, 0]]),
        lambda a: np.linalg.multi_dot([a[0], a.T, a, a[:, :2]]),
        lambda a: np.linalg.cond(a),
        lambda a: np.linalg.cond(a, 1),
        lambda a: np.linalg.diagonal(a, offset=1),
        lambda a: np.linalg.outer(a[0], a[1]),
        lambda a: np.linalg.tensordot(a, a, axes=((0,), (0,))),
        lambda a: np.linalg.matmul(a, a.T),
        lambda a: np.linalg.matrix_transpose(a),
    ],
)
def test_numpy_functions_on_tensors(program):
    x = np.random.default_rng(1).uniform(0.5, 2, (3, 3))
    result = program(leaf_of(x))
    np.testing.assert_allclose(result.detach(), program(x), rtol=1e-12)
    assert result.dtype == program(x).dtype
    assert is_scalar(result) == isinstance(program(x), np.generic)
    assert gradcheck(program, leaf_of(x))


UNIQUES = {
    "unique": np.unique,
    "along an axis": lambda x: np.unique(x, axis=0),
    "with places": lambda x: np.unique(x, return_index=True, return_inverse=True, return_counts=True),
    "counts": lambda x: np.unique(x, False, False, True),
    "nan": lambda x: np.unique(x, equal_nan=False),
    "all": np.unique_all,
    "values": np.unique_values,
    "with counts": np.unique_counts,
    "with inverse": np.unique_inverse,
}


@pytest.mark.parametrize("name", UNIQUES)
def test_unique_values_and_their_gradients(name):
    """The gradient of each value goes to its first occurrence; the others have none. NaN is equal to nothing."""
    x = np.array([[3.0, 1.0], [1.0, 0.0], [3.0, 1.0], [np.nan, 2.0], [np.nan, 7.0]])
    t = leaf_of(x)
    found, wanted = UNIQUES[name](t), UNIQUES[name](x)
    single = isinstance(found, vg.Tensor)
    for ours, theirs in zip((found,) if single else found, (wanted,) if single else wanted, strict=True):
        np.testing.assert_array_equal(ours.detach().numpy(), theirs)
    values = found if single else found[0]
    assert values.requires_grad and (single or not any(part.requires_grad for part in found[1:]))
    (g,) = grad(values.sum(), t)
    if name == "along an axis":
        np.testing.assert_array_equal(g.numpy(), [[1, 1], [1, 1], [0, 0], [1, 1], [1, 1]])
    else:
        merged = np.unique(x, equal_nan=name in ("unique", "with places", "counts"))
        assert g.numpy().sum() == merged.size
        np.testing.assert_array_equal(g.numpy()[:3], [[1, 1], [0, 1], [0, 0]])
    y = leaf_of([3.0, 1.0, 3.0, 2.0])
    # 1 * a + 2 * b + 3 * c, with the distinct values at places 1, 3 and 0
    np.testing.assert_array_equal(grad((np.unique(y) * y[:3]).sum(), y)[0].numpy(), [3 + 1, 3 + 2, 3, 1])


def test_numpy_functions_without_gradients():
    x = np.array([[3.0, 1.0], [1.0, 0.0]])
    t = leaf_of(x)
    pairs = [
        (np.argmax(t, axis=1), np.argmax(x, axis=1)),
        (np.searchsorted(t[1, ::-1], 0.5), np.searchsorted(x[1, ::-1], 0.5)),
        (np.searchsorted([0.0, 1.0], t, side="right"), np.searchsorted([0.0, 1.0], x, side="right")),
        (np.isin(t, [1.0, 3.0]), np.isin(x, [1.0, 3.0])),
        (np.digitize(t, np.array([0.5, 2.0])), np.digitize(x, np.array([0.5, 2.0]))),
        (np.bincount(vg.Tensor(np.array([0, 2, 2]))), np.array([1, 0, 2])),
        (np.bincount(np.zeros(0, int), vg.zeros(0, dtype=complex)), np.zeros(0, int)),
        (np.linalg.matrix_rank(t), np.linalg.matrix_rank(x)),
    ]
    for found, wanted in pairs:
        assert not found.requires_grad
        np.testing.assert_array_equal(found.numpy(), wanted)


def test_scipy_ufuncs_on_tensors():
    special = pytest.importorskip("scipy.special")
    x = leaf_of(np.array([0.25, 0.5, 0.75]))
    for name in ("erf", "gammaln", "digamma", "psi", "expit", "logit", "ndtr"):
        result = getattr(special, name)(x)
        assert result.requires_grad
        np.testing.assert_allclose(result.detach(), getattr(special, name)(x.detach().numpy()))
    assert gradcheck(lambda x: special.xlogy(x, x + 1), x)
    assert gradcheck(lambda x: special.jv(2, x) * special.gammainc(1.5, x), x)
    with pytest.raises(DifferentiabilityError, match="no gradient flows to argument 'v'"):
        special.gammainc(leaf_of(2.0), x)


def test_xlogy_with_a_first_value_of_zero():
    special = pytest.importorskip("scipy.special")
    x, y = leaf_of([0.0, 0.0, 2.0]), leaf_of([3.0, 0.0, 3.0])
    special.xlogy(x, y).sum().backward()
    np.testing.assert_allclose(x.grad, [np.log(3), 0.0, np.log(3)])
    np.testing.assert_allclose(y.grad, [0.0, 0.0, 2 / 3])


# -- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("program", "error", "message"),
    [
        (lambda: np.linalg.qr(vg.ones(3, 2), mode="raw"), ValueError, "'reduced' or 'complete'"),
        (lambda: vg.cross(vg.ones(4), vg.ones(4)), ValueError, r"three elements .* \(4,\) and \(4,\)"),
        (lambda: vg.topk(vg.ones(3), 4), ValueError, "between 0 and 3"),
        (lambda: vg.kthvalue(vg.ones(3), 0), ValueError, "between 1 and 3"),
        (lambda: vg.gelu(vg.ones(3), approximate="yes"), ValueError, "approximate"),
        (lambda: vg.conv1d(vg.ones(1, 2, 3), vg.ones(1, 3, 2)), ValueError, "shape"),
        (lambda: vg.conv1d(vg.ones(1, 2, 3), vg.ones(1, 2, 5)), ValueError, "does not fit"),
        (lambda: vg.conv2d(vg.ones(1, 2, 3), vg.ones(1, 2, 1)), ValueError, "4 dimensions"),
        (lambda: vg.max_pool1d(vg.ones(4), 2, padding=2), ValueError, "half"),
        (lambda: vg.layer_norm(vg.ones(2, 3), 2), ValueError, "layer_norm over"),
        (lambda: vg.mse_loss(vg.ones(2), vg.ones(2), "average"), ValueError, "reduction"),
        (lambda: vg.huber_loss(vg.ones(2), vg.zeros(2), delta=-1.0), ValueError, "delta must be positive"),
        (lambda: vg.nll_loss(vg.ones(2, 3), np.array([0, 1, 2])), ValueError, "class for each example"),
        (
            lambda: vg.nll_loss(vg.ones(2, 3), np.array([0, 1]), vg.ones(2, 3)),
            ValueError,
            "a weight for each class",
        ),
        (lambda: vg.conv1d(vg.ones(1, 2, 3), vg.ones(1, 2, 1), vg.ones(2)), ValueError, r"bias of shape \(2,\)"),
        (lambda: vg.one_hot(vg.Tensor(np.array([0, 3])), 3), ValueError, "classes"),
        (lambda: vg.matrix_exp(vg.ones(2, 3)), ValueError, "square"),
    ],
)
def test_invalid_operands_raise(program, error, message):
    with pytest.raises(error, match=message):
        program()


@pytest.mark.parametrize(
    "function",
    [lambda a: vg.matrix_power(a, 1), lambda a: OPERATORS["diff"](a, 0), lambda a: np.fft.fftn(a, axes=()).real],
    ids=["matrix_power", "diff", "fftn"],
)
def test_results_of_no_op_calls_are_copies(function):
    """These NumPy functions return their argument itself, so a write to the result would change it unrecorded."""
    x = vg.Tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    base = x * 1.0
    same = function(base)
    same[0, 0] = 7.0
    np.testing.assert_array_equal(base.detach().numpy(), x.detach().numpy())
    np.testing.assert_array_equal(vg.autograd.grad(base.sum() + same.sum(), x)[0].numpy(), [[1.0, 2.0], [2.0, 2.0]])


def test_a_large_gradient_of_an_exponential_keeps_its_digits():
    x = vg.Tensor([[0.3, -1.2], [0.5, 0.1]], requires_grad=True)
    (g,) = vg.autograd.grad(vg.matrix_exp(x), x, vg.ones(2, 2))
    (large,) = vg.autograd.grad(vg.matrix_exp(x), x, vg.full((2, 2), 1e12))
    np.testing.assert_allclose(large.numpy(), 1e12 * g.numpy(), rtol=1e-13)
    (nothing,) = vg.autograd.grad(vg.matrix_exp(x), x, vg.zeros(2, 2))
    np.testing.assert_array_equal(nothing.numpy(), 0)


def test_least_squares_of_integers_have_gradients():
    a, b = np.array([[1, 2], [3, 4], [5, 7]]), vg.Tensor([1.0, 2.0, 2.0], requires_grad=True)
    (g,) = vg.autograd.grad(vg.lstsq(a, b)[0].sum(), b)
    np.testing.assert_allclose(g.numpy(), np.linalg.pinv(a).sum(0), atol=1e-12)


# -- integers ---------------------------------------------------------------------------------------------------------


def test_integers_become_floats_if_the_result_is_float():
    x = np.array([[3, 1, 2], [0, 5, 4]])
    for function in (
        lambda a: np.quantile(a, 0.3),
        lambda a: np.median(a, axis=1),
        lambda a: np.cov(a),
        lambda a: np.interp(a, [0, 2, 7], [0, 1, 5]),
        lambda a: np.trapezoid(a),
        lambda a: np.fft.fft(a),
        lambda a: np.linalg.svdvals(a),
    ):
        found, wanted = function(vg.Tensor(x)), function(x)
        np.testing.assert_allclose(found, wanted)
        assert found.dtype == wanted.dtype
    np.testing.assert_allclose(vg.softmax(vg.Tensor(x)).sum(-1), 1)
    np.testing.assert_allclose(vg.gelu(vg.Tensor(x)), vg.gelu(vg.Tensor(x.astype(float))))
    values, indices = vg.max_pool1d(vg.Tensor(x), 2, padding=1)
    assert indices.tolist() == [[0, 2], [0, 1]]
    assert values.tolist() == [[3, 2], [0, 5]]


def test_the_gradient_of_a_power_of_bools_has_the_dtype_of_the_base():
    x = vg.Tensor(np.float32([2.0, 3.0]), requires_grad=True)
    (x ** vg.Tensor([True, False])).sum().backward()
    assert x.grad.dtype == np.float32
    assert x.grad.tolist() == [1.0, 0.0]


# -- null spaces -------------------------------------------------------------------------------------------------------


def null_space(a):
    """Return the projector onto the orthogonal complement of the columns of `a`, from a basis of it."""
    u = np.linalg.svd(a, full_matrices=True)[0]
    others = u[..., a.shape[-1] :]
    return others @ np.conj(np.swapaxes(others, -1, -2))


def null_space_of_rows(a):
    vh = np.linalg.svd(a, full_matrices=True)[2]
    others = vh[..., a.shape[-2] :, :]
    return np.conj(np.swapaxes(others, -1, -2)) @ others


def by_inverse(a):
    """Return the projector for the columns, without a decomposition."""
    adjoint = np.conj(np.swapaxes(a, -1, -2))
    return np.eye(a.shape[-2]) - a @ np.linalg.inv(adjoint @ a) @ adjoint


@pytest.mark.parametrize("kind", ["real", "complex"])
@pytest.mark.parametrize("shape", [(4, 2), (5, 1), (3, 4, 3)])
def test_null_space_projectors_have_derivatives(shape, kind):
    rng = np.random.default_rng(3)
    values = rng.normal(size=shape) + (1j * rng.normal(size=shape) if kind == "complex" else 0)
    weights = rng.normal(size=(*shape[:-2], shape[-2], shape[-2]))
    a = vg.Tensor(values, requires_grad=True)

    def of(projector):
        return (np.real(projector) * weights).sum() + (np.real(projector[..., 0, :]) ** 2).sum()

    (expected,) = grad(of(by_inverse(a)), a)
    (found,) = grad(of(null_space(a)), a, create_graph=True)
    np.testing.assert_allclose(found.detach(), expected, atol=1e-10)
    rows = vg.Tensor(np.conj(np.swapaxes(values, -1, -2)), requires_grad=True)
    (of_rows,) = grad(of(null_space_of_rows(rows)), rows)
    np.testing.assert_allclose(np.conj(np.swapaxes(of_rows, -1, -2)), expected, atol=1e-10)
    if kind == "real":
        assert gradcheck(lambda a: of(null_space(a)) + np.linalg.svd(a)[1].sum(), a)
        (first,) = grad(of(by_inverse(a)), a, create_graph=True)
        (second,) = grad((first * weights[..., : shape[-1]]).sum(), a)
        (again,) = grad((found * weights[..., : shape[-1]]).sum(), a)
        np.testing.assert_allclose(again, second, atol=1e-7)


def test_the_basis_of_a_null_space_has_no_derivative():
    a = vg.Tensor(np.random.default_rng(3).normal(size=(4, 2)), requires_grad=True)
    u = np.linalg.svd(a, full_matrices=True)[0]
    with pytest.raises(DifferentiabilityError, match="only functions of the space"):
        grad(u[:, 2].sum(), a)
