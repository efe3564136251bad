"""Generation of Python source for loops in segments: functions inside the program, and the code that runs them."""

from __future__ import annotations

from collections.abc import Sequence

from .ir import Segmented


def segments_text(
    loop: Segmented, indent: str, low: str | None, high: str | None, plain: list[str], taped: list[str],
    plain_names: Sequence[str], taped_names: Sequence[str], has_stacks: bool,
) -> list[str]:
    """Return the lines that run a loop in segments.

    Arguments:
        loop: the loop.
        indent: the indentation of the lines.
        low, high: the bounds of a `For`; None for a `While`.
        plain, taped: the lines of iterations without and with the tape, indented by one more level.
        plain_names, taped_names: the variables that these lines bind.
        has_stacks: whether numbers are saved in arrays that kernels write to.
    """
    name, inner, state = loop.name, indent + "    ", loop.state
    counters = ["nf", "ni"] if has_stacks else []
    ran = "goal_ - begin_"
    if loop.ran is not None:
        ran = loop.ran if low is None else f"({loop.ran} - {loop.first}) // {loop.step} + 1"
    result = f"{inner}return {ran}, {loop.stop or 'False'}"
    bounds = _bounds(loop, low, inner)
    found = [
        f"{indent}def {name}_advance(begin_, goal_):", *_nonlocal(plain_names, inner), *bounds, *plain, result,
        f"{indent}def {name}_record(begin_, goal_):", *_nonlocal([*taped_names, *counters], inner), *bounds, *taped,
        result,
    ]
    arrays = [f"({each}, {each}_bar, " if has_bar else f"({each}, None, " for each, has_bar, _ in state.live]
    arrays = [f"{text}copied({each}))" if is_written else f"{text}None)"
              for text, (each, _, is_written) in zip(arrays, state.live)]
    arrays += [f"({each}, None, copied({each}))" for each in state.written]
    dead = [each for name_, has_bar in state.dead for each in ([name_, f"{name_}_bar"] if has_bar else [name_])]
    if dead:
        found.append(f"{indent}{name}_entry = {_tuple(dead)}")
    found += [f"{indent}def {name}_save():", f"{inner}return {_tuple(state.numbers)}, {_tuple(arrays)}"]
    restored: list[str] = [*state.numbers, *dead]
    body = []
    if state.numbers:
        body.append(f"{inner}{_tuple(state.numbers)} = state_[0]")
    for number, (each, has_bar, _) in enumerate(state.live):
        restored += [each, f"{each}_bar"] if has_bar else [each]
        body.append(f"{inner}{each}, {f'{each}_bar' if has_bar else '_'}, _ = state_[1][{number}]")
    if dead:
        body.append(f"{inner}{_tuple(dead)} = {name}_entry")
    if arrays:
        body.append(f"{inner}put_back(state_[1])")
    found += [f"{indent}def {name}_restore(state_):", *_nonlocal(restored, inner), *(body or [f"{inner}pass"])]
    shadows = [_tuple([f"{each[0]}_bar" for each in group if each[1]]) for group in (state.live, state.dead)]
    found += [f"{indent}def {name}_shadows():", f"{inner}return {', '.join(shadows)}"]
    size = "tape.used if type(tape) is Tape else 0"
    counts = "nf, ni" if has_stacks else "0, 0"
    found += [f"{indent}def {name}_mark():", f"{inner}return len(tape), {size}, {counts}"]
    found += [f"{indent}def {name}_rewind(mark_):"]
    if has_stacks:
        found += [f"{inner}nonlocal nf, ni", f"{inner}_, _, nf, ni = mark_"]
    found += [f"{inner}if type(tape) is Tape:", f"{inner}    tape.shorten(mark_[0])"]
    functions = ", ".join(f"{name}_{each}" for each in ("advance", "record", "save", "restore", "shadows", "mark",
                                                          "rewind"))
    found.append(f"{indent}{name} = Segments('line {loop.line}', reports, tape_limit, {functions})")
    count = "None"
    if low is not None:
        count = f"max(0, {high})" if low == "0" and loop.step == 1 else f"len(range({low}, {high}, {loop.step}))"
    found.append(f"{indent}{name}.forward({count})")
    return found


def backwards_text(
    loop: Segmented, indent: str, low: str | None, body: list[str], names: Sequence[str], has_stacks: bool
) -> list[str]:
    """Return the lines that run the reverse of a loop in segments.

    Arguments:
        loop: the loop.
        indent: the indentation of the lines.
        low: the lower bound of a `For`; None for a `While`.
        body: the lines of the reverse of a segment, indented by one more level.
        names: the outside variables that it binds.
        has_stacks: whether numbers are saved in arrays that kernels write to.
    """
    inner = indent + "    "
    counters = ["nf", "ni"] if has_stacks else []
    return [
        f"{indent}def {loop.name}_back(begin_, goal_):", *_nonlocal([*names, *counters], inner),
        *_bounds(loop, low, inner), *body, f"{indent}{loop.name}.backward({loop.name}_back)",
    ]


def _bounds(loop: Segmented, low: str | None, indent: str) -> list[str]:
    """Return the bounds of a segment."""
    if low is None:
        return [f"{indent}{loop.until} = goal_ - begin_"]
    step = "" if loop.step == 1 else f" * {loop.step}" if loop.step > 0 else f" * ({loop.step})"
    base = "" if low == "0" else f"{low} + "
    return [f"{indent}{loop.first}, {loop.until} = {base}begin_{step}, {base}goal_{step}"]


def _nonlocal(names: Sequence[str], indent: str) -> list[str]:
    return [f"{indent}nonlocal {', '.join(names)}"] if names else []


def _tuple(texts: Sequence[str]) -> str:
    return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"
