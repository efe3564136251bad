"""Runs the programs of this folder in every installed library, and writes the results into docs/comparison.md.

    python -m pip install -e ".[bench]"
    python docs/peers

The results are kept in results.json, with the versions; a library that is not installed keeps its last result there.
The tables of comparison.md are made from that file.
"""

from __future__ import annotations

import json
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from features import FEATURES
from libraries import PEERS, Library, NumPy
from programs import PROGRAMS

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results.json"
COMPARISON = HERE.parent / "comparison.md"
TABLE = re.compile(r"<!-- peers: (?P<key>\w+) -->\n.*?<!-- end -->\n", re.DOTALL)
# Gradients that differ because they are defined differently.
MEANT = {("write_to_input", "MyGrad"): "the gradient with respect to the value of x after the write"}
# Programs for which viewgrad raises an error, too.
REFUSED_HERE = {
    "anomaly",
    "copying",
    "function_once_differentiable",
    "function_returns_a_view",
    "function_wrong_gradients",
    "no_grad_view",
    "second_backward",
    "unknown_function",
    "write_to_broadcast",
    "write_to_exported_array",
    "write_to_input",
}
SUMMARY = re.compile(r"<!-- summary -->\n.*?<!-- end -->\n", re.DOTALL)


def main() -> int:
    """Run everything, write results.json and comparison.md, and print what is new."""
    results = load()
    reference = NumPy()
    for kind in PEERS:
        try:
            library = kind()
        except ImportError as error:
            print(f"{kind.name} is not installed ({error}): its last results stay", file=sys.stderr)
            continue
        results["versions"][library.name] = library.version
        for key in PROGRAMS:
            results["outcomes"].setdefault(key, {})[library.name] = outcome(library, reference, key)
        for key, feature in FEATURES.items():
            results["outcomes"].setdefault(key, {})[library.name] = feature_outcome(feature, library)
    for key in [key for key in results["outcomes"] if key not in PROGRAMS and key not in FEATURES]:
        del results["outcomes"][key]
    RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False, sort_keys=True) + "\n")
    COMPARISON.write_text(with_tables(COMPARISON.read_text(), results))
    return 0


def load() -> dict[str, Any]:
    """Return the results of the last run."""
    if not RESULTS.exists():
        return {"versions": {}, "outcomes": {}}
    loaded: dict[str, Any] = json.loads(RESULTS.read_text())
    return loaded


# -- running ---------------------------------------------------------------------------------------------------------


def outcome(library: Library, reference: Library, key: str) -> str:
    """Run a program, and compare its value with NumPy's and its gradient with finite differences."""
    program, inputs = PROGRAMS[key]
    try:
        expected, expected_gradients = reference.value_and_gradients(program, inputs)
    except ValueError:  # NumPy itself refuses the program
        expected = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value, gradients = library.value_and_gradients(program, inputs)
    except Exception as error:
        return error_text(error)
    if expected is None:
        return f"computes {number(value)}, where NumPy raises an error"
    if not np.allclose(value, expected, rtol=1e-5):
        return f"computes another value: {number(value)}, where NumPy computes {number(expected)}"
    for gradient, right in zip(gradients, expected_gradients, strict=True):
        if not np.allclose(gradient, right, rtol=1e-4, atol=1e-5):
            if (key, library.name) in MEANT:
                return f"{MEANT[key, library.name]}: {array(gradient)}"
            return f"wrong gradient, without a warning: {array(gradient)}, where finite differences give {array(right)}"
    return "the gradient"


def feature_outcome(feature: dict[str, Any], library: Library) -> str:
    """Return the result of the library's own program for a feature, or the reason why there is none."""
    entry = feature.get(library.name)
    if entry is None:
        return "no such feature"
    if isinstance(entry, str):
        return entry
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return str(entry(library))
    except Exception as error:
        return error_text(error)


def error_text(error: Exception) -> str:
    """Return the class and message of an error, shortened to one line."""
    text = " ".join(str(error).split())
    if len(text) > 160:
        text = text[:160].rsplit(" ", 1)[0] + " ..."
    return f"{type(error).__name__}: {text}"


def number(value: Any) -> str:
    """Return a number with four digits."""
    return f"{complex(np.asarray(value)):.4g}" if np.iscomplexobj(value) else f"{float(np.asarray(value)):.4g}"


def array(value: Any) -> str:
    """Return an array as text in one line."""
    return " ".join(np.array2string(np.round(np.asarray(value), 4) + 0.0, separator=", ").split())


# -- the page --------------------------------------------------------------------------------------------------------


def with_tables(text: str, results: dict[str, Any]) -> str:
    """Return the page with its tables replaced."""
    text = TABLE.sub(lambda match: table(match["key"], results), text)
    return SUMMARY.sub(lambda _: summary(text, results), text)


def table(key: str, results: dict[str, Any]) -> str:
    """Return the table of the results of one program."""
    rows = [f"<!-- peers: {key} -->", "| library | result |", "|---|---|"]
    for kind in PEERS:
        found = results["outcomes"].get(key, {}).get(kind.name, "not tried")
        rows.append(f"| {kind.name} {results['versions'].get(kind.name, '')} | {escaped(found)} |")
    return "\n".join([*rows, "<!-- end -->", ""])


def summary(text: str, results: dict[str, Any]) -> str:
    """Return the summary, with one row for each section that has a program."""
    versions = " | ".join(f"{kind.name} {results['versions'].get(kind.name, '')}" for kind in PEERS)
    rows = ["<!-- summary -->", f"| behaviour | viewgrad | {versions} |", "|---|---|" + "---|" * len(PEERS)]
    title = ""
    for line in text.splitlines():
        heading = re.match(r"#+ (.*)", line)
        if heading:
            title = heading[1]
        found = re.match(r"<!-- peers: (\w+) -->", line)
        if found:
            cells = [short(results["outcomes"].get(found[1], {}).get(kind.name, "")) for kind in PEERS]
            here = "error" if found[1] in REFUSED_HERE else "yes"
            rows.append(f"| [{title}](#{anchor(title)}) | {here} | {' | '.join(cells)} |")
    return "\n".join([*rows, "<!-- end -->", ""])


def short(found: str) -> str:
    """Return a result in one or two words."""
    if found == "the gradient":
        return "yes"
    for start, word in (
        ("yes", "yes"),
        ("computes another value", "another value"),
        ("computes", "another value"),
        ("wrong", "**wrong gradient**"),
        ("no such feature", "-"),
        ("has no", "-"),
        ("not tried", ""),
    ):
        if found.startswith(start):
            return word
    return "error" if re.match(r"\w+(Error|Exception|Warning)\b", found) else "differs"


def escaped(text: str) -> str:
    """Return text escaped for a table cell."""
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


def anchor(title: str) -> str:
    """Return the anchor of a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


if __name__ == "__main__":
    sys.exit(main())
