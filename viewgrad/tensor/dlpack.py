"""DLPack: exchange of tensors with other libraries without copying.

Memory that another library may write to unnoticed is treated as foreign memory: values saved from it for backward are
copied when they are saved. See Note [Copy-on-write of saved values] in docs/notes/saved_values.md.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ..errors import AutogradError
from .creation import CPU, checked_device, from_numpy
from .escapes import has_tangent
from .modes import FORWARD, current_mode
from .storage import storage_of
from .tensor import Tensor, from_array, method
from .trace_hooks import array_of

DLPACK_CPU: Final = (1, 0)  # kDLCPU and the device number


def allow_external_writes(tensor: Tensor) -> None:
    """Prepare for undetected writes to `tensor`: preserve values saved so far, and copy values saved later."""
    storage = storage_of(tensor)
    storage.preserve(storage.root, None, "an export by DLPack")
    storage.foreign = storage.shared = True


@method
def __dlpack_device__(self: Tensor) -> tuple[int, int]:
    """Return the device in DLPack's terms: the CPU."""
    return DLPACK_CPU


@method
def __dlpack__(
    self: Tensor,
    *,
    stream: Any = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """Return the memory as a DLPack capsule, for `from_dlpack` of another library.

    Arguments:
        stream: None; there are no streams on a CPU.
        max_version: the newest version of DLPack that the consumer understands.
        dl_device: the requested device; None or the CPU.
        copy: True to copy, False to raise an error instead of copying, None to copy only if needed.

    Raises:
        AutogradError: if the tensor requires grad, or has a tangent, since the capsule would carry neither.
    """
    if self.requires_grad:
        raise AutogradError(
            "DLPack carries no history: this tensor requires grad, and results computed from the capsule would have "
            "no gradient; export detach() if no gradient is needed"
        )
    if current_mode() & FORWARD and has_tangent(self):
        raise AutogradError("exporting a tensor with a tangent by DLPack would lose the tangent; export detach()")
    array = array_of(self, "__dlpack__()")
    if copy or not isinstance(array, np.ndarray):
        array = np.array(array)
    else:
        allow_external_writes(self)
    keywords: dict[str, Any] = {"stream": stream}
    if max_version is not None:
        keywords["max_version"] = max_version
    if dl_device is not None:
        keywords["dl_device"] = dl_device
    if copy is not None:
        keywords["copy"] = copy
    return array.__dlpack__(**keywords)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """Return a tensor from an array of any library that supports DLPack.

    Arguments:
        x: an object with `__dlpack__` and `__dlpack_device__`.
        device: None or "cpu".
        copy: True to copy; False to raise an error instead of copying; None to share memory if possible.

    Returns:
        A tensor without history. If memory is shared, writes by either side are visible to the other.

    Raises:
        AutogradError: for a tensor that requires grad.

    Example:
        >>> import numpy as np, viewgrad as vg
        >>> vg.from_dlpack(np.arange(3.0))
        Tensor([0., 1., 2.])
    """
    checked_device(device)
    # NumPy 2.0 lacks these options: it shares memory or fails.
    keywords = {} if copy is None or np.lib.NumpyVersion(np.__version__) < "2.1.0" else {"copy": copy}
    array = np.from_dlpack(x, device=None, **keywords) if keywords else np.from_dlpack(x)
    return from_array(np.array(array)) if copy else from_numpy(array)


@method
def to_device(self: Tensor, device: Any, /, *, stream: Any = None) -> Tensor:
    """Return the tensor itself, since the only device is the CPU.

    Raises:
        ValueError: for a device other than "cpu".
    """
    checked_device(device)
    if stream is not None:
        raise ValueError(f"there are no streams on the device 'cpu', so stream must be None, not {stream!r}")
    return self


def _device(self: Tensor) -> str:
    """Return the device of the memory: 'cpu'."""
    return CPU


setattr(Tensor, "device", property(_device))  # noqa: B010
