"""The names of `viewgrad.scipy.integrate`, written by `python tools/stubs.py` with SciPy 1.17.1; do not edit."""

from typing import Any


BDF: Any
DOP853: Any
DenseOutput: Any
IntegrationWarning: Any
LSODA: Any
ODEintWarning: Any
OdeSolver: Any
RK23: Any
RK45: Any
Radau: Any
complex_ode: Any
def cubature(f: Any, a: Any, b: Any, *, rule: Any = ..., rtol: Any = ..., atol: Any = ..., max_subdivisions: Any = ..., args: Any = ..., workers: Any = ..., points: Any = ...) -> Any: ...
def lebedev_rule(n: Any) -> Any: ...
def newton_cotes(rn: Any, equal: Any = ...) -> Any: ...
def nsum(f: Any, a: Any, b: Any, *, step: Any = ..., args: Any = ..., log: Any = ..., maxterms: Any = ..., tolerances: Any = ...) -> Any: ...
def qmc_quad(func: Any, a: Any, b: Any, *, n_estimates: Any = ..., n_points: Any = ..., qrng: Any = ..., log: Any = ...) -> Any: ...
def tanhsinh(f: Any, a: Any, b: Any, *, args: Any = ..., log: Any = ..., maxlevel: Any = ..., minlevel: Any = ..., atol: Any = ..., rtol: Any = ..., preserve_shape: Any = ..., callback: Any = ...) -> Any: ...
