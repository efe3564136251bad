"""`numpy.random` for tensors, with the same numbers for the same seed.

Gradients flow to the location and scale of a distribution, since a sample is a function of them. A discrete sample is
piecewise constant, so its parameters have zero gradients. Other dependencies of samples on parameters raise an error.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..operators.numpy_api.adapted import lost
from ..operators.numpy_api.conversion import as_argument, as_tensors, carries_history, plain_values
from ..tensor.creation import as_operand, holds_tensor
from ..tensor.tensor import Tensor
from ..tensor.trace_hooks import observed

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


# Location-scale distributions: the location and scale arguments, with NumPy's defaults.
LOCATED: Final[dict[str, tuple[tuple[str, Any], tuple[str, Any]]]] = {
    "normal": (("loc", 0.0), ("scale", 1.0)),
    "laplace": (("loc", 0.0), ("scale", 1.0)),
    "gumbel": (("loc", 0.0), ("scale", 1.0)),
    "logistic": (("loc", 0.0), ("scale", 1.0)),
}
# Scale distributions: the scale argument and its position.
SCALED: Final = {"exponential": ("scale", 0), "rayleigh": ("scale", 0), "gamma": ("scale", 1)}
# Samples from a finite or countable set: constant under small changes of their parameters.
DISCRETE: Final = frozenset(
    "binomial geometric hypergeometric integers logseries multinomial negative_binomial poisson randint "
    "random_integers zipf multivariate_hypergeometric".split()
)
# Methods that do not return samples.
OTHER: Final = frozenset({"bytes", "get_state", "set_state", "seed", "spawn", "bit_generator"})


def sampler(draw: Callable[..., Any], name: str, seeded_in: Any = None) -> Callable[..., Any]:
    """Return a method of a NumPy generator that returns tensors.

    Arguments:
        draw: NumPy's method.
        name: the name of the method.
        seeded_in: the trace in which the generator was created with a seed, so that its samples are constants there.
    """

    @functools.wraps(draw, updated=())
    def sample(*args: Any, **kwargs: Any) -> Any:
        observer = observed()
        if observer is not None and observer is not seeded_in:
            observer.refuse(f"drawing random numbers by numpy.random.{name}")  # a trace would treat it as constant
        if name in SPECIAL:
            return SPECIAL[name](draw, *args, **kwargs)
        if not carries_history(args) and not carries_history(kwargs):
            if not holds_tensor(args) and not holds_tensor(tuple(kwargs.values())):
                return as_tensors(draw(*args, **kwargs), args)
            args = tuple(as_argument(arg) for arg in args)
        elif name in LOCATED:
            return _located(draw, LOCATED[name], *args, **kwargs)
        elif name in SCALED:
            return _scaled(draw, *SCALED[name], *args, **kwargs)
        elif name not in DISCRETE:
            raise lost(
                f"numpy.random.{name}",
                "samples of this distribution have no derivative with respect to its parameters; draw from a standard "
                "distribution and compute the sample from it and the parameters, or pass detach() of them",
            )
        return as_tensors(draw(*map(plain_values, args), **plain_values(kwargs)))

    return sample


def _standard(draw: Callable[..., Any], size: Any, *parameters: Any, standard: tuple[float, ...]) -> Any:
    if size is None:
        size = np.broadcast_shapes(*(parameter.shape for parameter in parameters))
    return as_tensors(draw(*standard, plain_values(as_argument(size))))


def _located(draw: Callable[..., Any], named: Any, *args: Any, size: Any = None, **kwargs: Any) -> Any:
    (first, default), (second, default_scale) = named
    given = dict(zip((first, second, "size"), args)) | kwargs
    loc = as_operand(given.get(first, default))
    scale = as_operand(given.get(second, default_scale))
    return loc + scale * _standard(draw, given.get("size", size), loc, scale, standard=(0.0, 1.0))


def _scaled(draw: Callable[..., Any], named: str, place: int, *args: Any, size: Any = None, **kwargs: Any) -> Any:
    given = dict(zip(("shape", named, "size") if place else (named, "size"), args)) | kwargs
    scale = as_operand(given.get(named, 1.0))
    if not place:
        return scale * _standard(draw, given.get("size", size), scale, standard=(1.0,))
    if carries_history(given["shape"]):
        raise lost("numpy.random.gamma", "no gradient flows to the shape of the distribution; pass its detach()")
    shape = np.asarray(plain_values(given["shape"]))
    extents = given.get("size", size)
    extents = np.broadcast_shapes(shape.shape, scale.shape) if extents is None else plain_values(as_argument(extents))
    return scale * as_tensors(np.asarray(draw(shape, 1.0, extents)))


def _uniform(draw: Callable[..., Any], low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
    if not holds_tensor((low, high, size)):
        return as_tensors(draw(low, high, size))
    low, high = as_operand(low), as_operand(high)
    return low + (high - low) * _standard(draw, size, low, high, standard=(0.0, 1.0))


def _lognormal(draw: Callable[..., Any], mean: Any = 0.0, sigma: Any = 1.0, size: Any = None) -> Any:
    if not holds_tensor((mean, sigma, size)):
        return as_tensors(draw(mean, sigma, size))
    mean, sigma = as_operand(mean), as_operand(sigma)
    normal = np.log(_standard(draw, size, mean, sigma, standard=(0.0, 1.0)))
    return np.exp(mean + sigma * normal)


def _multivariate_normal(
    draw: Callable[..., Any], mean: Any, cov: Any, size: Any = None, *args: Any, **kwargs: Any
) -> Any:
    mean, cov, size = as_argument(mean), as_argument(cov), plain_values(as_argument(size))
    if carries_history(cov):
        generator = draw.args[0] if isinstance(draw, functools.partial) else getattr(draw, "__self__")  # noqa: B009
        return correlated(generator, mean, cov, size, kwargs.get("method", "svd"))
    cov = plain_values(cov)
    if not holds_tensor(mean):
        return as_tensors(draw(mean, cov, size, *args, **kwargs))
    return mean + as_tensors(draw(np.zeros(mean.shape), cov, size, *args, **kwargs))


def correlated(generator: Any, mean: Any, cov: Any, size: Any, method: str = "svd") -> Any:
    """Return normally distributed random vectors, as in NumPy; gradients flow to the mean and the covariances.

    Arguments:
        generator: the source of the random numbers: a `Generator`, or a `RandomState`, which uses a different
            factorization.
        mean: the mean.
        cov: the covariances, a tensor.
        size: the number of vectors.
        method: how the covariances are factored: "svd", "eigh" or "cholesky".

    Returns:
        The vectors, along the last dimension. If eigenvalues are equal, only "cholesky" has a gradient.
    """
    extents = () if size is None else (size,) if np.ndim(size) == 0 else tuple(size)
    noise = as_tensors(np.asarray(generator.standard_normal((*extents, cov.shape[0]))))
    if method == "cholesky":
        factor = np.linalg.cholesky(cov).mT
    elif method == "eigh":
        values, vectors = np.linalg.eigh(cov)
        factor = (vectors * np.sqrt(np.abs(values))).mT
    else:
        left, values, right = np.linalg.svd(cov)
        legacy = isinstance(generator, np.random.RandomState)
        factor = np.sqrt(values)[:, None] * right if legacy else (left * np.sqrt(values)).mT
    return mean + noise @ factor


def _choice(draw: Callable[..., Any], a: Any, *args: Any, **kwargs: Any) -> Any:
    args, kwargs = (
        tuple(map(plain_values, map(as_argument, args))),
        plain_values({key: as_argument(value) for key, value in kwargs.items()}),
    )
    if not holds_tensor(a):
        return as_tensors(draw(a, *args, **kwargs))
    a = as_argument(a)
    if not isinstance(a, Tensor) or not a.ndim:
        return as_tensors(draw(a if not isinstance(a, Tensor) else a.detach().item(), *args, **kwargs))
    axis = kwargs.pop("axis", 0)
    places = draw(a.shape[axis], *args, **kwargs)
    return np.take(a, places, axis)


def _permutation(draw: Callable[..., Any], x: Any, axis: int = 0) -> Any:
    options = {"axis": axis} if axis else {}
    if not isinstance(x, Tensor) or not x.ndim:
        return as_tensors(draw(x.detach().item() if isinstance(x, Tensor) else x, **options))
    return np.take(x, draw(np.arange(x.shape[axis])), axis)


def _shuffle(draw: Callable[..., Any], x: Any, axis: int = 0) -> None:
    if not isinstance(x, Tensor):
        draw(x, **({"axis": axis} if axis else {}))
        return
    places = np.arange(x.shape[axis])
    draw(places)
    x[...] = np.take(x, places, axis)


def _permuted(draw: Callable[..., Any], x: Any, *, axis: Any = None, out: Any = None) -> Any:
    if not isinstance(x, Tensor):
        return as_tensors(draw(x, axis=axis, out=out))
    if axis is None:
        shuffled = x.reshape(-1)[draw(np.arange(x.size))].reshape(x.shape)
    else:
        counts = np.arange(x.shape[axis]).reshape([-1 if dim == axis % x.ndim else 1 for dim in range(x.ndim)])
        shuffled = x.take_along_axis(draw(np.array(np.broadcast_to(counts, x.shape)), axis=axis), axis)
    if out is None:
        return shuffled
    out[...] = shuffled
    return out


SPECIAL: Final[dict[str, Callable[..., Any]]] = {
    "uniform": _uniform,
    "lognormal": _lognormal,
    "multivariate_normal": _multivariate_normal,
    "choice": _choice,
    "permutation": _permutation,
    "shuffle": _shuffle,
    "permuted": _permuted,
}


def _methods(cls: type) -> dict[str, Any]:
    """Return the methods of a class of generators, wrapped to return tensors."""

    def method(name: str) -> Any:
        inherited = getattr(cls, name)

        @functools.wraps(inherited, updated=())
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            draw = functools.partial(inherited, self)
            return sampler(draw, name, getattr(self, "seeded_in", None))(*args, **kwargs)

        return call

    return {name: method(name) for name in dir(cls) if not name.startswith("_") and name not in OTHER}


Generator: Any = type(
    "Generator",
    (np.random.Generator,),
    _methods(np.random.Generator)
    | {
        "__module__": __name__,
        "__doc__": "A random generator like `numpy.random.Generator` that returns tensors.",
    },
)
RandomState: Any = type(
    "RandomState",
    (np.random.RandomState,),
    _methods(np.random.RandomState)
    | {
        "__module__": __name__,
        "__doc__": "A random generator like `numpy.random.RandomState` that returns tensors.",
    },
)


def default_rng(seed: Any = None) -> Any:
    """Return a generator of random tensors; the argument is that of `numpy.random.default_rng`."""
    if isinstance(seed, Generator):
        return seed
    if isinstance(seed, Tensor):
        seed = seed.detach().tolist()
    made = Generator(np.random.default_rng(seed).bit_generator)
    if isinstance(seed, (int, np.integer)):
        made.seeded_in = observed()
    return made


def seed(seed: Any = None) -> None:
    """Seed the generator shared by NumPy's functions and the functions here."""
    np.random.seed(seed.detach().tolist() if isinstance(seed, Tensor) else seed)  # noqa: NPY002


__all__ = [name for name in np.random.__all__ if not name.startswith("_")]
for _name in __all__:
    if _name not in globals():
        _value = getattr(np.random, _name)
        globals()[_name] = (
            _value if isinstance(_value, type) or _name in OTHER or not callable(_value) else sampler(_value, _name)
        )

# The module of the functions above, and the generator that they share.
mtrand: Final = types.ModuleType("mtrand", np.random.mtrand.__doc__)
_SHARED: Final = np.random.mtrand._rand
_SharedRandomState: Any = type(
    "RandomState",
    (RandomState,),
    {
        name: staticmethod(globals().get(name, getattr(_SHARED, name)))
        for name in dir(np.random.RandomState)
        if not name.startswith("_")
    },
)
vars(mtrand).update({name: globals().get(name, value) for name, value in vars(np.random.mtrand).items()})
mtrand._rand = _SharedRandomState(_SHARED._bit_generator)  # type: ignore[attr-defined]
