"""Linear systems: representations, time steps, and discretization."""

from __future__ import annotations

import warnings
from typing import Any, Final

import numpy as np
import scipy.signal  # type: ignore[import-untyped]

from ...operators.numpy_api.adapted import lost
from ...operators.numpy_api.conversion import as_tensors, carries_history, plain_values
from .. import linalg
from ..wrap import Accepted, floating, maker, numbers

MADE: dict[str, Any] = {}
made: Final = maker(scipy.signal, MADE, is_checked=True, accepted=Accepted(by_value=False))


def polynomial_of(roots: Any) -> Any:
    """Return the coefficients of the polynomial with given roots, real if roots come in conjugate pairs."""
    roots = floating(roots)
    found: Any = numbers(np.ones(1))
    for place in range(roots.shape[0]):
        moved = found * roots[place]
        found = np.concatenate([found, np.zeros(1)]) - np.concatenate([np.zeros(1), moved])
    return found.real * 1.0 if np.isrealobj(np.poly(plain_values(roots))) and found.dtype.kind == "c" else found


def characteristic(a: Any) -> Any:
    """Return the coefficients of a matrix's characteristic polynomial, by the Faddeev-LeVerrier algorithm."""
    size = a.shape[0]
    coefficients, product = [numbers(1.0)], np.eye(size)
    for k in range(1, size + 1):
        product = a @ product
        coefficients.append(-np.trace(product) / k)
        product = product + coefficients[-1] * np.eye(size)
    return np.stack([each * 1.0 for each in coefficients])


def normalized(b: Any, a: Any) -> tuple[Any, Any]:
    """Return coefficients divided by the leading one of the denominator, without leading zeros of the numerators."""
    b, a = np.atleast_2d(floating(b)), np.atleast_1d(floating(a))
    if a.ndim != 1 or b.ndim > 2:
        raise ValueError("The denominator must have one dimension, and the numerator one or two.")
    if not np.any(plain_values(a) != 0):
        raise ValueError("Denominator must have at least one nonzero element.")
    a = a[int(np.argmax(plain_values(a) != 0)) :]
    b, a = b / a[0], a / a[0]
    lead = np.abs(plain_values(b)).max(0) > 1e-14  # SciPy treats smaller ones as zero
    if lead.shape[0] and not lead[0]:
        warnings.warn("the numerator has leading zeros, which are removed", scipy.signal.BadCoefficients, stacklevel=4)
        b = b[:, int(np.argmax(lead)) if lead.any() else lead.shape[0] - 1 :]
    return b[0] if b.shape[0] == 1 else b, a


@made
def normalize(b: Any, a: Any) -> Any:
    """Return the coefficients divided by the leading one of the denominator."""
    return normalized(b, a)


# -- representations ---------------------------------------------------------------------------------------------------


@made
def zpk2tf(z: Any, p: Any, k: Any) -> Any:
    """Convert zeros, poles and gain to numerator and denominator."""
    return numbers(k) * polynomial_of(z), polynomial_of(p)


@made
def tf2zpk(b: Any, a: Any) -> Any:
    """Convert numerator and denominator to zeros, poles and gain."""
    b, a = normalized(b, a)
    dtype = np.result_type(b.dtype, a.dtype)
    b, a = b.astype(dtype), a.astype(dtype)
    return np.roots(b / b[0]), np.roots(a), b[0]


@made
def tf2ss(num: Any, den: Any) -> Any:
    """Convert a transfer function to the controller canonical form."""
    num, den = normalized(num, den)
    num = np.atleast_2d(num)
    order = den.shape[0]
    if num.shape[-1] > order:
        raise ValueError("Improper transfer function. `num` is longer than `den`.")
    num = np.concatenate([np.zeros((num.shape[0], order - num.shape[1]), num.dtype), num], -1)
    d = num[:, :1]
    if order == 1:
        return numbers(np.zeros((1, 1))), numbers(np.zeros((1, d.shape[1]))), numbers(np.zeros((d.shape[0], 1))), d
    a = np.concatenate([-den[1:][None, :], np.eye(order - 2, order - 1)])
    return a, numbers(np.eye(order - 1, 1)), num[:, 1:] - num[:, :1] * den[1:], d


@made
def ss2tf(A: Any, B: Any, C: Any, D: Any, input: int = 0) -> Any:
    """Convert a state-space system to numerator and denominator."""
    A, B, C, D = (np.atleast_2d(floating(each)) for each in (A, B, C, D))
    b, d = B[:, input : input + 1], D[:, input : input + 1]
    den = characteristic(A)
    rows = [characteristic(A - b @ C[k : k + 1]) + (d[k, 0] - 1) * den for k in range(C.shape[0])]
    return np.stack(rows), den


@made
def zpk2ss(z: Any, p: Any, k: Any) -> Any:
    """Convert zeros, poles and gain to state space."""
    return MADE["tf2ss"](*MADE["zpk2tf"](z, p, k))


@made
def ss2zpk(A: Any, B: Any, C: Any, D: Any, input: int = 0) -> Any:
    """Convert a state-space system to zeros, poles and gain."""
    num, den = MADE["ss2tf"](A, B, C, D, input)
    return MADE["tf2zpk"](num[0] if num.shape[0] == 1 else num, den)


@made
def sos2tf(sos: Any) -> Any:
    """Convert a cascade to numerator and denominator."""
    sos = floating(sos)
    b, a = sos[0, :3], sos[0, 3:]
    for section in sos[1:]:
        b, a = np.convolve(b, section[:3]), np.convolve(a, section[3:])
    return b, a


@made
def sos2zpk(sos: Any) -> Any:
    """Convert a cascade to zeros, poles and gain, with two zeros and two poles for each section."""
    zeros, poles, gain = [], [], numbers(1.0)
    for section in floating(sos):
        z, p, k = MADE["tf2zpk"](section[:3], section[3:])
        zeros.append(np.concatenate([z.astype(complex), np.zeros(2 - z.shape[0])]))
        poles.append(np.concatenate([p.astype(complex), np.zeros(2 - p.shape[0])]))
        gain = gain * k
    return np.concatenate(zeros), np.concatenate(poles), gain


@made
def zpk2sos(z: Any, p: Any, k: Any, pairing: Any = None, *, analog: bool = False) -> Any:
    """Convert zeros, poles and gain to a cascade, with SciPy's pairing."""
    z, p, k = floating(z), floating(p), floating(k)
    plain = scipy.signal.zpk2sos(*(plain_values(each) for each in (z, p, k)), pairing, analog=analog)
    left = {"z": list(range(z.shape[0])), "p": list(range(p.shape[0]))}
    sections = []
    for row in plain:
        halves = []
        for coefficients, roots, name in ((row[:3], z, "z"), (row[3:], p, "p")):
            lead = int(np.argmax(coefficients != 0))
            monic = _nearest(np.roots(coefficients), roots, left[name])
            halves.append(np.concatenate([np.zeros(lead), monic, np.zeros(3 - lead - monic.shape[0])]))
        sections.append(halves)
    sections[0][0] = sections[0][0] * k
    return np.stack([np.concatenate(halves) for halves in sections])


def _nearest(wanted: Any, roots: Any, left: list[int]) -> Any:
    """Return the polynomial with the roots nearest to given numbers; other roots are constants."""
    chosen = []
    for number in wanted:
        distances = [abs(complex(plain_values(roots[place])) - number) for place in left]
        if distances and min(distances) < 1e-6 * max(1.0, abs(number)):
            chosen.append(roots[left.pop(int(np.argmin(distances)))])
        else:
            chosen.append(numbers(number))
    found = polynomial_of(np.stack([each.astype(complex) for each in chosen])) if chosen else numbers(np.ones(1))
    return found.real * 1.0 if found.dtype.kind == "c" else found


@made
def tf2sos(b: Any, a: Any, pairing: Any = None, *, analog: bool = False) -> Any:
    """Convert numerator and denominator to a cascade."""
    return MADE["zpk2sos"](*MADE["tf2zpk"](b, a), pairing, analog=analog)


@made
def place_poles(A: Any, B: Any, poles: Any, method: str = "YT", rtol: float = 1e-3, maxiter: int = 30) -> Any:
    """Return the gains that place the poles of a system with one input, by Ackermann's formula.

    Source: J. Ackermann, "Der Entwurf linearer Regelungssysteme im Zustandsraum" (1972).
    """
    A, B, poles = floating(A), floating(B), floating(poles)
    plain = scipy.signal.place_poles(*plain_values((A, B, poles)), method, rtol, maxiter)
    if B.shape[1] != 1:
        raise lost("scipy.signal.place_poles", "the gains of systems with several inputs are not unique")
    size, wanted = A.shape[0], polynomial_of(poles)
    columns, power, total = [B], np.eye(size), wanted[size] * np.eye(size)
    for k in range(size - 1, -1, -1):
        power = A @ power
        total = total + wanted[k] * power
        columns.append(A @ columns[-1])
    reached = np.concatenate(columns[:size], 1)
    gains = np.linalg.solve(reached.mT, np.eye(size)[:, -1:]).mT @ total
    near = [int(np.argmin(np.abs(plain_values(poles) - place))) for place in plain.requested_poles]
    plain.gain_matrix, plain.requested_poles, plain.computed_poles = gains, poles[near], poles[near]
    del plain.X  # the eigenvectors, whose derivatives would be lost
    return plain


def parts_of(system: Any) -> tuple[Any, ...]:
    """Return the parts of a system; for a SciPy object, its arrays and, if it is discrete, the time step."""
    if not isinstance(system, scipy.signal.lti | scipy.signal.dlti):
        return tuple(system)
    for kind, names in (
        (scipy.signal.TransferFunction, ("num", "den")),
        (scipy.signal.ZerosPolesGain, ("zeros", "poles", "gain")),
        (scipy.signal.StateSpace, ("A", "B", "C", "D")),
    ):
        if isinstance(system, kind):
            step = () if system.dt is None else (system.dt,)
            return (*(getattr(system, name) for name in names), *step)
    raise TypeError(f"{type(system).__name__} is not a system of SciPy")


def state_space(system: Any) -> tuple[Any, ...]:
    """Return a system of two, three or four parts in state-space form."""
    system = parts_of(system)
    if len(system) == 4:
        return tuple(np.atleast_2d(floating(each)) for each in system)
    if len(system) in (2, 3):
        return tuple(MADE["tf2ss" if len(system) == 2 else "zpk2ss"](*system))
    raise ValueError("a system has two parts (tf), three (zpk) or four (state space)")


# -- in discrete time --------------------------------------------------------------------------------------------------


def _held(a: Any, b: Any, c: Any, d: Any, dt: Any) -> tuple[Any, ...]:
    """Discretize with the input held constant over each step."""
    n, m = b.shape
    top = np.concatenate([a, b], 1) * dt
    whole = linalg.expm(np.concatenate([top, np.zeros((m, n + m))]))[:n]
    return whole[:, :n], whole[:, n:], c, d


def _first_order(a: Any, b: Any, c: Any, d: Any, dt: Any) -> tuple[Any, ...]:
    """Discretize with the input interpolated linearly."""
    n, m = b.shape
    upper = np.concatenate([a * dt, b * dt, np.zeros((n, m))], 1)
    middle = np.concatenate([np.zeros((m, n + m)), np.eye(m)], 1)
    whole = linalg.expm(np.concatenate([upper, middle, np.zeros((m, n + 2 * m))]))
    phi, first, second = whole[:n, :n], whole[:n, n : n + m], whole[:n, n + m :]
    return phi, first - second + phi @ second, c, d + c @ second


def _generalized(a: Any, b: Any, c: Any, d: Any, dt: Any, alpha: Any) -> tuple[Any, ...]:
    """Return the generalized bilinear transform of a system."""
    eye = np.eye(a.shape[0])
    system = eye - alpha * dt * a
    ad, bd = np.linalg.solve(system, eye + (1.0 - alpha) * dt * a), np.linalg.solve(system, dt * b)
    cd = np.linalg.solve(system.mT, c.mT).mT
    return ad, bd, cd, d + alpha * (c @ bd)


ALPHAS: Final = {"bilinear": 0.5, "tustin": 0.5, "euler": 0.0, "forward_diff": 0.0, "backward_diff": 1.0}


@made
def cont2discrete(system: Any, dt: Any, method: str = "zoh", alpha: Any = None) -> Any:
    """Convert a continuous-time system to discrete time."""
    system = parts_of(system)
    if len(system) == 2:
        a, b, c, d, dt = MADE["cont2discrete"](MADE["tf2ss"](*system), dt, method, alpha)
        return (*MADE["ss2tf"](a, b, c, d), dt)
    if len(system) == 3:
        a, b, c, d, dt = MADE["cont2discrete"](MADE["zpk2ss"](*system), dt, method, alpha)
        return (*MADE["ss2zpk"](a, b, c, d), dt)
    a, b, c, d = state_space(system)
    dt = numbers(dt) * 1.0 if hasattr(dt, "ndim") else dt
    if method in ALPHAS:
        return (*_generalized(a, b, c, d, dt, ALPHAS[method]), dt)
    if method == "gbt":
        if alpha is None or not 0 <= plain_values(alpha) <= 1:
            raise ValueError("Alpha parameter must be within the interval [0,1] for the gbt method")
        return (*_generalized(a, b, c, d, dt, alpha), dt)
    if method == "zoh":
        return (*_held(a, b, c, d, dt), dt)
    if method == "foh":
        return (*_first_order(a, b, c, d, dt), dt)
    if method == "impulse":
        if np.any(plain_values(d) != 0):
            raise ValueError("Impulse method is only applicable to strictly proper systems")
        ad = linalg.expm(a * dt)
        return ad, ad @ b * dt, c, c @ b * dt, dt
    raise ValueError(f"Unknown transformation method '{method}'")


# -- responses ---------------------------------------------------------------------------------------------------------


def _steps(x: Any, ad: Any, driven: Any, count: int) -> Any:
    """Return the states of a system, with a row for each time."""
    rows = [x]
    for place in range(1, count):
        x = ad @ x + driven[place - 1]
        rows.append(x)
    return np.stack(rows)


def _squeezed(y: Any) -> Any:
    return y[:, 0] if y.shape[1] == 1 else y


@made
def lsim(system: Any, U: Any, T: Any, X0: Any = None, interp: bool = True) -> Any:
    """Return the times, the output and the states of a continuous-time system for a given input."""
    a, b, c, d = state_space(system)
    times = np.atleast_1d(floating(T))
    count, order, inputs = times.shape[0], a.shape[0], b.shape[1]
    u = numbers(np.zeros((count, inputs))) if U is None or (np.ndim(U) == 0 and U == 0) else np.atleast_1d(floating(U))
    if u.shape[0] != count:
        raise ValueError("U must have the same number of rows as elements in T.")
    u = u.reshape(count, -1)
    x = numbers(np.zeros(order)) if X0 is None else floating(X0)
    x = x.reshape(-1) if x.ndim else x.broadcast_to((order,))
    start = float(plain_values(times)[0])
    if start < 0:
        raise ValueError("Initial time must be nonnegative")
    if start > 0:
        x = linalg.expm(a * times[0]) @ x
    if count == 1:
        return times, _squeezed((c @ x + u @ d.mT).reshape(1, -1))[0], _squeezed(x.reshape(1, -1))[0]
    if not np.allclose(np.diff(plain_values(times)), plain_values(times[1] - times[0])):
        raise ValueError("Time steps are not equally spaced.")
    dt = times[1] - times[0]
    if interp:
        zeros, eye = np.zeros((inputs, order)), np.eye(inputs)
        upper = np.concatenate([a * dt, b * dt, np.zeros((order, inputs))], 1)
        middle = np.concatenate([zeros, np.zeros((inputs, inputs)), eye], 1)
        whole = linalg.expm(np.concatenate([upper, middle, np.zeros((inputs, order + 2 * inputs))]))[:order]
        ad, second = whole[:, :order], whole[:, order + inputs :]
        driven = u[:-1] @ (whole[:, order : order + inputs] - second).mT + u[1:] @ second.mT
    else:
        ad, bd, _, _ = _held(a, b, c, d, dt)
        driven = u[:-1] @ bd.mT
    states = _steps(x, ad, driven, count)
    return times, _squeezed(states @ c.mT + u @ d.mT), _squeezed(states)


def _times(scipys: Any, system: Any, T: Any, N: Any) -> Any:
    """Return the times of a response, by default SciPy's: up to 7 times the largest time constant of the system."""
    if T is not None:
        return T
    plain = tuple(np.array(plain_values(floating(each))) for each in parts_of(system))
    found = np.array(scipys(plain, T=None, N=N)[0])
    a = state_space(system)[0]
    values = np.linalg.eigvals(plain_values(a))
    slowest = int(np.argmin(np.abs(values.real)))
    if not carries_history(a) or values[slowest].real == 0:
        return as_tensors(found)
    gaps = np.abs(np.delete(values, slowest) - values[slowest])
    if (gaps <= 1e-6 * np.abs(values).max()).any():
        raise lost(f"scipy.signal.{scipys.__name__}", "the times depend on a multiple eigenvalue of the system; pass T")
    rates = np.abs(np.linalg.eigvals(a).real[slowest])
    return np.linspace(0.0, 1.0, found.size) * (7.0 / rates)


@made
def step(system: Any, X0: Any = None, T: Any = None, N: Any = None) -> Any:
    """Return the times and the step response."""
    times = _times(scipy.signal.step, system, T, N)
    return MADE["lsim"](system, np.ones(np.shape(plain_values(times))), times, X0, interp=False)[:2]


@made
def impulse(system: Any, X0: Any = None, T: Any = None, N: Any = None) -> Any:
    """Return the times and the impulse response."""
    a, b, c, d = state_space(system)
    times = _times(scipy.signal.impulse, system, T, N)
    start = b.reshape(-1) if X0 is None else b.reshape(-1) + floating(X0)
    found = MADE["lsim"]((a, b, c, d), None, times, start, interp=False)[1]
    return (times if T is None else numbers(T)), found


def _step_of(dt: Any) -> float:
    if carries_history(dt):
        raise lost("scipy.signal.dlsim", "no gradient flows to the sampling period dt; pass its detach()")
    return 1.0 if dt is True else float(plain_values(dt))


@made
def dlsim(system: Any, u: Any, t: Any = None, x0: Any = None) -> Any:
    """Return the times, the output and, for a state space, the states of a discrete-time system."""
    *parts, dt = parts_of(system)
    a, b, c, d = state_space(parts)
    u, step = floating(u), _step_of(dt)
    u = np.atleast_1d(u)
    u = u.reshape(u.shape[0], -1)
    if t is None:
        count, stop = u.shape[0], (u.shape[0] - 1) * step
    else:
        stop = float(plain_values(numbers(t))[-1])
        count = int(np.floor(stop / step)) + 1
    times = np.linspace(0.0, stop, num=count)
    if t is not None:
        if carries_history(t):
            raise lost("scipy.signal.dlsim", "no gradient flows to the times; pass detach() of them")
        given = np.asarray(plain_values(t), float)
        left = np.clip(np.searchsorted(given, times, "right") - 1, 0, len(given) - 2)
        share = ((times - given[left]) / (given[left + 1] - given[left]))[:, None]
        u = u[left] * (1.0 - share) + u[left + 1] * share
    x = numbers(np.zeros(a.shape[0])) if x0 is None else floating(x0).reshape(-1).broadcast_to((a.shape[0],))
    states = _steps(x, a, u @ b.mT, count)
    output = (as_tensors(times), states @ c.mT + u @ d.mT)
    return (*output, states) if len(parts) == 4 else output


def _responses(system: Any, x0: Any, t: Any, n: Any, is_held: bool) -> Any:
    """Return the times and, for each input, the outputs of a discrete-time system with an impulse or step at that
    input.
    """
    *parts, dt = parts_of(system)
    a, b, c, d = state_space(parts)
    count = 100 if n is None else int(n)
    times = np.linspace(0, count * _step_of(dt), count, endpoint=False) if t is None else t
    outputs = []
    for place in range(b.shape[1]):
        u = np.zeros((len(times), b.shape[1]))
        u[slice(None) if is_held else 0, place] = 1.0
        tout, y, _ = MADE["dlsim"]((a, b, c, d, dt), u, times, x0)
        outputs.append(y)
    return tout, tuple(outputs)


@made
def dimpulse(system: Any, x0: Any = None, t: Any = None, n: Any = None) -> Any:
    """Return the times and the impulse responses of a discrete-time system, one for each input."""
    return _responses(system, x0, t, n, False)


@made
def dstep(system: Any, x0: Any = None, t: Any = None, n: Any = None) -> Any:
    """Return the times and the step responses of a discrete-time system, one for each input."""
    return _responses(system, x0, t, n, True)
