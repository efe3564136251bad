"""The names of `viewgrad.scipy.fft`, written by `python tools/stubs.py` with SciPy 1.17.1; do not edit."""

from typing import Any


dct: Any
dctn: Any
dst: Any
dstn: Any
fft: Any
fft2: Any
def fftfreq(n: Any, d: Any = ..., *, xp: Any = ..., device: Any = ...) -> Any: ...
fftn: Any
def fftshift(x: Any, axes: Any = ...) -> Any: ...
fht: Any
def fhtoffset(dln: Any, mu: Any, initial: Any = ..., bias: Any = ...) -> Any: ...
def get_workers() -> Any: ...
hfft: Any
hfft2: Any
hfftn: Any
idct: Any
idctn: Any
idst: Any
idstn: Any
ifft: Any
ifft2: Any
ifftn: Any
def ifftshift(x: Any, axes: Any = ...) -> Any: ...
ifht: Any
ihfft: Any
ihfft2: Any
ihfftn: Any
irfft: Any
irfft2: Any
irfftn: Any
next_fast_len: Any
prev_fast_len: Any
def register_backend(backend: Any) -> Any: ...
rfft: Any
rfft2: Any
def rfftfreq(n: Any, d: Any = ..., *, xp: Any = ..., device: Any = ...) -> Any: ...
rfftn: Any
def set_backend(backend: Any, coerce: Any = ..., only: Any = ...) -> Any: ...
def set_global_backend(backend: Any, coerce: Any = ..., only: Any = ..., try_last: Any = ...) -> Any: ...
def set_workers(workers: Any) -> Any: ...
def skip_backend(backend: Any) -> Any: ...
