"""Conversion of indices in kernels to unsigned integers, which Numba does not count from the end.

For a signed index, Numba selects between the index and its sum with the length. If LLVM cannot prove that no index in a
loop is negative, the selection prevents it from recognizing consecutive elements and from vectorizing. The indices of a
program are proven to be in range, or checked, before they are used.
"""

from __future__ import annotations

import ast


def make_indices_unsigned(source: str) -> str:
    """Return the source of a kernel with all computed indices of arrays unsigned."""
    lines = [line.encode() for line in source.split("\n")]  # offsets in syntax trees count bytes
    edits: list[tuple[int, int, bytes]] = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name):  # lengths, as in `x.shape[0]`
            continue
        for each in node.slice.elts if isinstance(node.slice, ast.Tuple) else (node.slice,):
            if isinstance(each, ast.Constant):
                continue
            assert each.lineno == each.end_lineno and each.end_col_offset is not None
            edits += [(each.lineno, each.col_offset, b"unsigned("), (each.lineno, each.end_col_offset, b")")]
    for line, offset, text in sorted(edits, reverse=True):
        lines[line - 1] = lines[line - 1][:offset] + text + lines[line - 1][offset:]
    return b"\n".join(lines).decode()
