"""Linear systems as objects: `lti`, `dlti` and their representations, which SciPy's functions of systems accept.

As in SciPy, a system is created by `lti(...)`, `dlti(...)` or the class of its representation, with `dt` for discrete
time. If no part has a history, the object is SciPy's own.
"""

from __future__ import annotations

import abc
import functools
from typing import Any, ClassVar, Final

import numpy as np
import scipy.signal  # type: ignore[import-untyped]

from ...operators.numpy_api.conversion import carries_history, plain_values
from ..wrap import floating
from .responses import MADE as RESPONSES
from .systems import MADE as SYSTEMS
from .systems import normalized, state_space

MADE: dict[str, Any] = {}


class System(abc.ABC):
    """A linear time-invariant system whose parts are tensors.

    Arguments:
        system: the parts of the representation, or a system in another representation.
        dt: the time step of a system in discrete time, or True if it is not specified; None in continuous time.
    """

    FORMS: ClassVar[tuple[str, ...]] = ()
    dt: Any

    @classmethod
    def of_parts(cls, parts: Any, dt: Any) -> Any:
        """Return the system with the given parts in this representation; SciPy's object if they have no history."""
        if not carries_history(tuple(parts)):
            options = {} if dt is None else {"dt": plain_values(dt)}
            return getattr(scipy.signal, cls.__name__)(*plain_values(tuple(parts)), **options)
        made = object.__new__(_IN_TIME[cls, dt is not None])
        made.dt = dt
        made._set(*parts)
        return made

    @abc.abstractmethod
    def _set(self, *parts: Any) -> None:
        """Store the parts as tensors in their usual shapes."""

    @property
    def parts(self) -> tuple[Any, ...]:
        """The parts of the representation, without the time step."""
        return tuple([getattr(self, name) for name in self.FORMS])

    @property
    def zeros(self) -> Any:
        """The zeros."""
        return self.to_zpk().zeros

    @property
    def poles(self) -> Any:
        """The poles."""
        return self.to_zpk().poles

    def to_tf(self) -> Any:
        """Return the transfer function."""
        return TransferFunction.of_parts(self._converted("tf"), self.dt)

    def to_zpk(self) -> Any:
        """Return the system in zeros, poles and gain form."""
        return ZerosPolesGain.of_parts(self._converted("zpk"), self.dt)

    def to_ss(self) -> Any:
        """Return the system in state-space form."""
        return StateSpace.of_parts(self._converted("ss"), self.dt)

    def _converted(self, form: str) -> Any:
        own = _SHORT[self.FORMS]
        return self.parts if own == form else SYSTEMS[f"{own}2{form}"](*self.parts)

    def __repr__(self) -> str:
        lines = ",\n".join(map(repr, self.parts))
        return f"{type(self).__name__}(\n{lines},\ndt: {self.dt!r}\n)"


class TransferFunction(System):
    """A system given by the polynomials of its transfer function, highest power first."""

    FORMS = ("num", "den")

    def __new__(cls, *system: Any, **options: Any) -> Any:
        return _made(cls, "to_tf", system, options)

    def _set(self, num: Any, den: Any) -> None:
        self.num, self.den = normalized(num, den)


class ZerosPolesGain(System):
    """A system given by zeros, poles and gain."""

    FORMS = ("zeros", "poles", "gain")
    zeros: Any = None
    poles: Any = None

    def __new__(cls, *system: Any, **options: Any) -> Any:
        return _made(cls, "to_zpk", system, options)

    def _set(self, zeros: Any, poles: Any, gain: Any) -> None:
        self.zeros, self.poles, self.gain = np.atleast_1d(floating(zeros)), np.atleast_1d(floating(poles)), gain


class StateSpace(System):
    """A system in state-space form, given by the matrices of states, inputs, outputs and feedthrough."""

    FORMS = ("A", "B", "C", "D")

    def __new__(cls, *system: Any, **options: Any) -> Any:
        return _made(cls, "to_ss", system, options)

    def _set(self, A: Any, B: Any, C: Any, D: Any) -> None:
        scipy.signal.abcd_normalize(*plain_values((A, B, C, D)))  # raises for shapes that do not match
        self.A, self.B, self.C, self.D = state_space((A, B, C, D))


class lti(System):
    """A continuous-time system, given by two parts (transfer function), three (zeros, poles, gain) or four (state
    space).

    Example:
        >>> import viewgrad as vg
        >>> from viewgrad.scipy import signal
        >>> decay = vg.Tensor([1.0, 2.0], requires_grad=True)  # the response is (1 - exp(-2 t)) / 2
        >>> times, response = signal.lti([1.0], decay).step(T=[0.0, 1.0])
        >>> vg.autograd.grad(response[1], decay)[0].round(4)
        Tensor([-0.1353, -0.1485])
    """

    def __new__(cls, *system: Any) -> Any:
        if len(system) not in (2, 3, 4):
            raise ValueError("`system` needs to be an instance of `lti` or have 2, 3 or 4 arguments.")
        return _FORMS[len(system)].of_parts(system, None)

    def impulse(self, X0: Any = None, T: Any = None, N: Any = None) -> Any:
        """Return the times and the impulse response."""
        return MADE["impulse"](self, X0, T, N)

    def step(self, X0: Any = None, T: Any = None, N: Any = None) -> Any:
        """Return the times and the step response."""
        return MADE["step"](self, X0, T, N)

    def output(self, U: Any, T: Any, X0: Any = None) -> Any:
        """Return the times, the output and the states for a given input."""
        return MADE["lsim"](self, U, T, X0)

    def bode(self, w: Any = None, n: int = 100) -> Any:
        """Return the frequencies, the magnitude in decibels and the phase in degrees."""
        return MADE["bode"](self, w, n)

    def freqresp(self, w: Any = None, n: int = 10000) -> Any:
        """Return the frequencies and the frequency response."""
        return MADE["freqresp"](self, w, n)

    def to_discrete(self, dt: Any, method: str = "zoh", alpha: Any = None) -> Any:
        """Convert the system to discrete time, in the same representation."""
        return cont2discrete(self, dt, method, alpha)


class dlti(System):
    """A discrete-time system with time step `dt`; see `lti`."""

    def __new__(cls, *system: Any, dt: Any = True) -> Any:
        if len(system) not in (2, 3, 4):
            raise ValueError("`system` needs to be an instance of `dlti` or have 2, 3 or 4 arguments.")
        return _FORMS[len(system)].of_parts(system, dt)

    def impulse(self, x0: Any = None, t: Any = None, n: Any = None) -> Any:
        """Return the times and the impulse responses, one for each input."""
        return MADE["dimpulse"](self, x0, t, n)

    def step(self, x0: Any = None, t: Any = None, n: Any = None) -> Any:
        """Return the times and the step responses, one for each input."""
        return MADE["dstep"](self, x0, t, n)

    def output(self, u: Any, t: Any, x0: Any = None) -> Any:
        """Return the times, the output and, for a state space, the states for a given input."""
        return MADE["dlsim"](self, u, t, x0)

    def bode(self, w: Any = None, n: int = 100) -> Any:
        """Return the frequencies, the magnitude in decibels and the phase in degrees."""
        return MADE["dbode"](self, w, n)

    def freqresp(self, w: Any = None, n: int = 10000, whole: bool = False) -> Any:
        """Return the frequencies and the frequency response."""
        return MADE["dfreqresp"](self, w, n, whole)


_FORMS: Final[dict[int, Any]] = {2: TransferFunction, 3: ZerosPolesGain, 4: StateSpace}
_SHORT: Final = {TransferFunction.FORMS: "tf", ZerosPolesGain.FORMS: "zpk", StateSpace.FORMS: "ss"}
# The classes by representation, and by whether time is discrete.
_IN_TIME: Final[dict[tuple[Any, bool], Any]] = {
    (form, is_discrete): type(f"{form.__name__}{name}", (form, kind), {"__module__": __name__, "__doc__": form.__doc__})
    for form in _FORMS.values()
    for is_discrete, name, kind in ((False, "Continuous", lti), (True, "Discrete", dlti))
}


def _made(form: Any, conversion: str, system: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Create a system in a representation, from its parts or from a system in another representation."""
    if len(system) == 1 and isinstance(system[0], System):
        return getattr(system[0], conversion)()
    if len(system) != len(form.FORMS):
        raise ValueError(f"{form.__name__} requires {len(form.FORMS)} arguments, not {len(system)}")
    if options.keys() - {"dt"}:
        raise TypeError(f"{form.__name__} has no option {', '.join(sorted(options.keys() - {'dt'}))}")
    return form.of_parts(system, options.get("dt"))


def _as_parts(system: Any) -> Any:
    """Return the parts of a system object of this module, with its time step if time is discrete."""
    if not isinstance(system, System) or isinstance(system, scipy.signal.lti | scipy.signal.dlti):
        return system
    return system.parts if system.dt is None else (*system.parts, system.dt)


def cont2discrete(system: Any, dt: Any, method: str = "zoh", alpha: Any = None) -> Any:
    """Convert a continuous-time system to discrete time; an object yields an object, and parts yield parts."""
    *parts, step = SYSTEMS["cont2discrete"](_as_parts(system), dt, method, alpha)
    return _FORMS[len(parts)].of_parts(parts, step) if isinstance(system, lti) else (*parts, step)


def _of_objects(function: Any) -> Any:
    """Extend a function of systems to accept objects."""

    @functools.wraps(function)
    def call(system: Any, *args: Any, **kwargs: Any) -> Any:
        return function(_as_parts(system), *args, **kwargs)

    return call


MADE["cont2discrete"] = cont2discrete
for _name in ("lsim", "step", "impulse", "freqresp", "bode", "dlsim", "dstep", "dimpulse", "dfreqresp", "dbode"):
    MADE[_name] = _of_objects((SYSTEMS | RESPONSES)[_name])

for _class in (lti, dlti, *_FORMS.values()):
    _class.register(getattr(scipy.signal, _class.__name__))  # SciPy's systems are instances of these classes
    MADE[_class.__name__] = _class
