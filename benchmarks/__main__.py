"""The command line: `python -m benchmarks [--quick] [--only NAME] [--peers torch,jax] [--out DIR]`."""

from __future__ import annotations

import argparse

import numpy as np

from .backends import PEERS, mutable_backends
from .measuring import Effort
from .micro import run_micro


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--out", default="benchmarks/out")
    args = parser.parse_args()
    backends, skipped = mutable_backends(args.peers.split(","))
    print(*skipped, sep="\n")
    chosen = [b for b in backends if b.name in ("viewgrad", "torch")]
    effort = Effort(repeats=5, sample=0.005, budget=0.5) if args.quick else Effort()
    sizes = (4, 64, 4096) if args.quick else (4, 64, 4096, 1_000_000)
    rows = run_micro(chosen, effort, sizes, args.only)
    ratios: dict[int, list[float]] = {}
    for row in rows:
        ours, theirs = row.seconds("viewgrad"), row.seconds("torch")
        text = f"{row.size:8d} {row.name:34s}"
        if ours is not None:
            text += f" {ours * 1e6:9.2f} us"
        if theirs is not None:
            text += f" {theirs * 1e6:9.2f} us"
        if ours is not None and theirs is not None:
            text += f" {ours / theirs:6.2f}"
            ratios.setdefault(row.size, []).append(ours / theirs)
        print(text, row.error)
    for size, values in ratios.items():
        print(size, "geometric mean", np.exp(np.mean(np.log(values))), "worst", max(values))


main()
