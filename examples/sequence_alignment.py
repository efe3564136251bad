"""Learn the scores of a sequence alignment from examples.

An alignment of two strings pays for mismatches and gaps. Which scores are right? Take pairs whose alignment is known,
and make the known alignments probable among all. The sum over all alignments is a table that is filled cell by cell
(Needleman and Wunsch, with a sum in place of the maximum). Its gradient with respect to the score of a cell is the
probability that the alignment goes through it.

    python examples/sequence_alignment.py        # writes sequence_alignment.png

Needleman, S.B. and Wunsch, C.D., 1970. A general method applicable to the search for similarities. J. Mol. Biol. 48.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import viewgrad as vg
from viewgrad.autograd import grad
from viewgrad.scipy import optimize

PAIRS = [("ACGTTGCA", "ACGTGCA"), ("GATTACA", "GATACCA"), ("CCGTAAGT", "CCGAAGGT")]


def alignments(scores: Any, gap: Any) -> Any:
    """Return the logarithm of the sum of exp(score) over all alignments."""
    n, m = scores.shape
    table = vg.zeros((n + 1, m + 1))
    for i in range(1, n + 1):
        table[i, 0] = table[i - 1, 0] + gap
    for j in range(1, m + 1):
        table[0, j] = table[0, j - 1] + gap
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            matched = table[i - 1, j - 1] + scores[i - 1, j - 1]
            skipped = vg.logaddexp(table[i - 1, j], table[i, j - 1]) + gap
            table[i, j] = vg.logaddexp(matched, skipped)
    return table[n, m]


def scores_of(a: str, b: str, parameters: Any) -> Any:
    """Return the score of each pair of letters."""
    same = np.array([[float(p == q) for q in b] for p in a])
    return parameters[0] * same + parameters[1] * (1 - same)


def known(a: str, b: str) -> tuple[Any, int]:
    """Return the known alignment: the longest common subsequence, and the number of gaps it leaves."""
    n, m = len(a), len(b)
    longest = np.zeros((n + 1, m + 1), int)
    for i in range(n - 1, -1, -1):
        for j in range(m - 1, -1, -1):
            longest[i, j] = 1 + longest[i + 1, j + 1] if a[i] == b[j] else max(longest[i + 1, j], longest[i, j + 1])
    path, i, j = np.zeros((n, m)), 0, 0
    while i < n and j < m:
        if a[i] == b[j]:
            path[i, j] = 1.0
            i, j = i + 1, j + 1
        elif longest[i + 1, j] >= longest[i, j + 1]:
            i += 1
        else:
            j += 1
    return path, int(n + m - 2 * path.sum())


def loss(parameters: Any, pairs: list[tuple[str, str]]) -> Any:
    """Return the negative log-probability of the known alignments, with a small penalty on large scores."""
    total = 0.01 * (parameters * parameters).sum()
    for a, b in pairs:
        path, gaps = known(a, b)
        scores = scores_of(a, b, parameters)
        total = total + alignments(scores, parameters[2]) - (scores * path).sum() - gaps * parameters[2]
    return total


def fit(small: bool = False) -> dict[str, Any]:
    """Learn the scores of a match, a mismatch and a gap.

    Arguments:
        small: one pair and few steps, for tests.
    """
    pairs = PAIRS[:1] if small else PAIRS
    found = optimize.minimize(
        lambda p: loss(p, pairs), np.zeros(3), method="L-BFGS-B", options={"maxiter": 5 if small else 40}
    )
    best = vg.Tensor(np.asarray(found.x))
    a, b = PAIRS[0]
    probabilities = []
    for parameters in (vg.zeros(3), best):
        scores = scores_of(a, b, parameters).requires_grad_()
        probabilities.append(grad(alignments(scores, parameters[2]), scores)[0].numpy())
    return {
        "parameters": best.numpy(), "probabilities": probabilities, "pair": (a, b),
        "loss": float(found.fun), "loss before": float(loss(vg.zeros(3), pairs)),
    }  # fmt: skip


def figure(small: bool = False) -> Figure:
    """Draw the probability of each pair of letters, before and after the fit."""
    found = fit(small)
    panels = (picture := Figure(figsize=(7, 3.6))).subplots(1, 2)
    for axes, probability, title in zip(panels, found["probabilities"], ("all scores 0", "learnt scores")):
        axes.imshow(probability, vmin=0, vmax=1)
        axes.set(title=title, xticks=range(len(found["pair"][1])), yticks=range(len(found["pair"][0])))
        axes.set_xticklabels(found["pair"][1])
        axes.set_yticklabels(found["pair"][0])
    picture.suptitle("match {:.1f}, mismatch {:.1f}, gap {:.1f}".format(*found["parameters"]))
    return picture


if __name__ == "__main__":
    figure().savefig(Path(__file__).stem + ".png", dpi=120)
