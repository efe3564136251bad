"""Learn the parameters of an image filter that works in place.

Diffusion smooths an image; the diffusion of Perona and Malik slows down at edges. How much it slows down, and the
size of each step, are learnt from one image whose original is known: a few parameters, differentiated through steps
that overwrite the image.

    python examples/denoising.py        # writes denoising.png

Perona, P. and Malik, J., 1990. Scale-space and edge detection using anisotropic diffusion. IEEE PAMI 12.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import viewgrad as vg
from viewgrad.scipy import optimize


def images(size: int) -> tuple[Any, Any]:
    """Return an image of a disc, a bar and a slope, and the same image with noise."""
    y, x = np.mgrid[0:1 : size * 1j, 0:1 : size * 1j]
    clean = 0.3 * x + 0.7 * ((x - 0.35) ** 2 + (y - 0.4) ** 2 < 0.05) + 0.5 * ((x > 0.7) & (x < 0.85))
    return clean, clean + 0.15 * np.random.default_rng(0).normal(size=clean.shape)


def denoised(noisy: Any, parameters: Any, steps: int) -> Any:
    """Return the image after some diffusion steps, each with its own step size and edge threshold."""
    image = vg.Tensor(noisy)
    for k in range(steps):
        size, edge = 0.24 / (1 + vg.exp(-parameters[2 * k])), vg.exp(parameters[2 * k + 1])
        right, down = image[:, 1:] - image[:, :-1], image[1:] - image[:-1]
        right = size * right * vg.exp(-((right / edge) ** 2))
        down = size * down * vg.exp(-((down / edge) ** 2))
        image[:, :-1] += right
        image[:, 1:] -= right
        image[:-1] += down
        image[1:] -= down
    return image


def fit(small: bool = False) -> dict[str, Any]:
    """Learn the step sizes and edge thresholds.

    Arguments:
        small: a small image and few steps, for tests.
    """
    size, steps = (12, 2) if small else (48, 6)
    clean, noisy = images(size)

    def error(parameters: Any) -> Any:
        return ((denoised(noisy, parameters, steps) - vg.Tensor(clean)) ** 2).mean()

    start = np.tile([0.0, -1.0], steps)
    found = optimize.minimize(error, start, method="L-BFGS-B", options={"maxiter": 8 if small else 40})
    result = denoised(noisy, vg.Tensor(np.asarray(found.x)), steps)
    return {
        "clean": clean, "noisy": noisy, "denoised": result.numpy(),
        "loss": float(found.fun), "loss before": float(np.mean((noisy - clean) ** 2)),
    }  # fmt: skip


def figure(small: bool = False) -> Figure:
    """Draw the noisy image, the denoised image and the original."""
    found = fit(small)
    panels = (picture := Figure(figsize=(8, 3))).subplots(1, 3)
    errors = {"noisy": found["loss before"], "denoised": found["loss"], "clean": 0.0}
    for axes, (name, error) in zip(panels, errors.items()):
        axes.imshow(found[name], cmap="gray", vmin=-0.2, vmax=1.4)
        axes.set(title=f"{name}: error {error**0.5:.3f}", xticks=[], yticks=[])
    return picture


if __name__ == "__main__":
    figure().savefig(Path(__file__).stem + ".png", dpi=120)
