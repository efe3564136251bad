"""Errors of eager mode in every mode: the same class, with the same message."""

import contextlib
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import viewgrad as vg
from viewgrad import func
from viewgrad.autograd import forward_ad, graph
from viewgrad.autograd.modes.profile import profile
from viewgrad.errors import AutogradError

# -- programs ----------------------------------------------------------------------------------------------------------
# Each takes a scalar `s`, a vector `v` of shape (3,) and a matrix `m` of shape (2, 3), which all have a history.


def broadcast(s):
    window = np.broadcast_to(s, (1,))
    window += 1


def row_of_broadcast(s):
    np.broadcast_to(s, (3,))[0] = 5.0


def swapped(m):
    expanded = m[:1].expand(2, 3)
    expanded += 1.0


SCALARS = {
    "s[...] = 2": lambda s, v, m: s.__setitem__(..., 2.0),
    "s[...] = s": lambda s, v, m: s.__setitem__(..., 2 * s),
    "s[()] = 2": lambda s, v, m: s.__setitem__((), 2.0),
    "s[0] = 2": lambda s, v, m: s.__setitem__(0, 2.0),
    "s[True] = 2": lambda s, v, m: s.__setitem__(True, 2.0),
    "place": lambda s, v, m: np.place(s, True, [2.0]),
    "put": lambda s, v, m: np.put(s, [0], [2.0]),
    "putmask": lambda s, v, m: np.putmask(s, True, [2.0]),
    "copyto": lambda s, v, m: np.copyto(s, 2.0),
    "flat": lambda s, v, m: setattr(s, "flat", 2.0),
    "flat[0]": lambda s, v, m: s.flat.__setitem__(0, 2.0),
    "fill": lambda s, v, m: s.fill(2.0),
    "copy_": lambda s, v, m: s.copy_(2.0),
    "add_": lambda s, v, m: s.add_(2.0),
    "out": lambda s, v, m: np.add(s, 1.0, out=s),
    "add.at": lambda s, v, m: np.add.at(s, (), 1.0),
    "view": lambda s, v, m: s.view().__setitem__(..., 2.0),
    "T": lambda s, v, m: s.T.__setitem__(..., 2.0),
    "squeeze": lambda s, v, m: s.squeeze().__setitem__(..., 2.0),
    "detach": lambda s, v, m: s.detach().__setitem__(..., 2.0),
    "an element": lambda s, v, m: v[1].__setitem__(..., 2.0),
    "a sum": lambda s, v, m: v.sum().__setitem__(..., 2.0),
    "broadcast": lambda s, v, m: broadcast(s),
    "row of broadcast": lambda s, v, m: row_of_broadcast(s),
}
MALFORMED = {
    "no such row": lambda s, v, m: m[7],
    "no such element": lambda s, v, m: v[5],
    "too many indices": lambda s, v, m: v[0, 1],
    "a float as index": lambda s, v, m: v[1.0],
    "a string as index": lambda s, v, m: v["a"],
    "a long mask": lambda s, v, m: v[np.ones(5, bool)],
    "set no such row": lambda s, v, m: m.__setitem__(7, 1.0),
    "set no such element": lambda s, v, m: v.__setitem__(5, 1.0),
    "set by a float": lambda s, v, m: v.__setitem__(1.0, 1.0),
    "set another shape": lambda s, v, m: m.__setitem__(0, [1.0, 2.0]),
    "set a matrix": lambda s, v, m: v.__setitem__(slice(None), m),
    "set by places": lambda s, v, m: v.__setitem__([0, 9], 1.0),
    "set places, another shape": lambda s, v, m: v.__setitem__([0, 1], [1.0, 2.0, 3.0]),
    "set a string": lambda s, v, m: v.__setitem__(0, "a"),
    "set an object": lambda s, v, m: v.__setitem__(0, object()),
    "set a complex number": lambda s, v, m: v.__setitem__(0, 1j),
    "set complex numbers": lambda s, v, m: v.__setitem__(..., 1j),
    "set a complex number by a mask": lambda s, v, m: v.__setitem__(v > 0, 1j),
    "fill with a complex number": lambda s, v, m: v.fill(1j),
    "expanded": lambda s, v, m: swapped(m),
    "add of shapes": lambda s, v, m: m + v[:2],
    "add_ of shapes": lambda s, v, m: v.add_(m),
    "add_ of complex": lambda s, v, m: v.add_(1j),
    "matmul": lambda s, v, m: m @ m,
    "reshape": lambda s, v, m: m.reshape(4),
    "sum over no axis": lambda s, v, m: m.sum(axis=5),
    "transpose": lambda s, v, m: m.transpose(0, 0),
    "concatenate": lambda s, v, m: np.concatenate([m, v]),
    "stack": lambda s, v, m: np.stack([v, v[:1]]),
    "integers of inv": lambda s, v, m: np.linalg.inv(m),
    "casting": lambda s, v, m: v.astype(float, casting="zzz"),
    "order": lambda s, v, m: v.astype(float, order="zzz"),
    "copy in an order": lambda s, v, m: v.copy(order="zzz"),
    "add with a casting": lambda s, v, m: np.add(v, v, casting="zzz"),
    "copyto with a casting": lambda s, v, m: np.copyto(v, v * 1.0, casting="zzz"),
    "requires_grad": lambda s, v, m: setattr(v.detach(), "requires_grad", "no"),
    "requires_grad_": lambda s, v, m: v.detach().requires_grad_("no"),
    "a tensor that requires grad": lambda s, v, m: vg.Tensor([1.0], requires_grad="no"),
    "not a dtype": lambda s, v, m: v.astype("zzz"),
    "swap no axes": lambda s, v, m: m.swapaxes(0, 5),
    "split": lambda s, v, m: np.split(v, 2),
    "out of another shape": lambda s, v, m: np.add(v, v, out=v[:2]),
    "out of another dtype": lambda s, v, m: np.add(v, v, out=vg.zeros(3, dtype=int)),
    "where of another shape": lambda s, v, m: np.add(v, v, where=np.ones((2, 2), bool)),
    "clip_": lambda s, v, m: v.clip_("a", 1.0),
    "einsum": lambda s, v, m: np.einsum("ij,jk", m, m),
    "put outside": lambda s, v, m: np.put(v, [9], 1.0),
    "take outside": lambda s, v, m: v.take([9]),
    "detach_ of a view": lambda s, v, m: m[0].detach_(),
    "add.at outside": lambda s, v, m: np.add.at(v, 9, 1.0),
    "add.at of a row outside": lambda s, v, m: np.add.at(m, (0, 9), 1.0),
    "multiply.at outside": lambda s, v, m: np.multiply.at(v, 9, 1.0),
    "put along no axis": lambda s, v, m: np.put_along_axis(m, np.zeros((1, 3), int), 1.0, 2),
    "scatter along no axis": lambda s, v, m: m.scatter_(-3, np.zeros((1, 3), int), 1.0),
    "a mesh of a matrix": lambda s, v, m: vg.numpy.ix_(m),
}
PROGRAMS = SCALARS | MALFORMED

# -- modes -------------------------------------------------------------------------------------------------------------


def computed(x):
    return x.sum(), x * 2.0, x[None] * vg.ones((2, 1))


def outcome(program, x):
    """Return the class of the error, and its message without parts that differ from run to run."""
    with np.errstate(all="ignore"):
        try:
            program(*computed(x))
        except Exception as error:
            said = error.message if isinstance(error, AutogradError) else ""  # NumPy's own differ
            return type(error), re.sub(r"0x[0-9a-f]+|\(line .*?\)|^.*: a scalar is a value", "", said)
    return None, ""


def leaf():
    return vg.Tensor([1.0, 2.0, 3.0], requires_grad=True)


def under(make):
    def run(program):
        with make():
            return outcome(program, leaf())

    return run


def with_tangent(program):
    with forward_ad.dual_level():
        return outcome(program, forward_ad.make_dual(vg.Tensor([1.0, 2.0, 3.0]), vg.ones(3)))


def inside(transform):
    """Run in a function that a transform calls, and ignore its result."""

    def run(program):
        found = []

        def function(x):
            found.append(outcome(program, x))
            return x.sum()

        with contextlib.suppress(AutogradError):
            transform(function)
        return found[0]

    return run


POINT = np.array([1.0, 2.0, 3.0])
MODES = {
    "no_grad": under(vg.no_grad),
    "inference_mode": under(vg.inference_mode),
    "detect_anomaly": under(vg.autograd.detect_anomaly),
    "view_replay": under(lambda: vg.view_replay(True)),
    "saved_tensors_hooks": under(lambda: graph.saved_tensors_hooks(lambda value: value, lambda value: value)),
    "forbid_mutation": under(graph.forbid_mutation_on_saved_tensors),
    "profile": under(profile),
    "dual_level": with_tangent,
    "func.grad": inside(lambda f: func.grad(f)(POINT)),
    "func.jacfwd": inside(lambda f: func.jacfwd(f)(POINT)),
    "func.hessian": inside(lambda f: func.hessian(f)(POINT)),
    "func.functionalize": inside(lambda f: func.functionalize(f)(leaf())),
    "func.vmap": inside(lambda f: func.vmap(f)(leaf()[None])),
    "compile": inside(lambda f: vg.compile(f, executor="python")(leaf())),
    "trace": inside(lambda f: vg.symbolic.trace(f, leaf())),
}

@pytest.mark.parametrize("name", PROGRAMS)
def test_every_mode_refuses_the_same_writes_as_plain_mode(name):
    program = PROGRAMS[name]
    expected = outcome(program, leaf())
    assert expected[0] is not None
    for mode, run in MODES.items():
        found = run(program)
        assert found[0] is not None, mode
        assert issubclass(found[0], expected[0]) or issubclass(expected[0], found[0]), (mode, found)
        assert found[1] == expected[1], mode


# -- drawn writes, held against NumPy ----------------------------------------------------------------------------------

TARGETS = {
    "a scalar": (lambda x: x.sum(), lambda a: a.sum()),
    "an array without dimensions": (lambda x: x[1, ...].clone(), lambda a: a[1, ...].copy()),
    "a vector": (lambda x: x * 2.0, lambda a: a * 2.0),
    "a view": (lambda x: (x * 2.0)[1:], lambda a: (a * 2.0)[1:]),
    "a matrix": (lambda x: x[None] * vg.ones((2, 1)), lambda a: a[None] * np.ones((2, 1))),
}
INDICES = [0, -1, 9, ..., (), slice(1, None), (..., 0), (0, 1), None, [0, 1], [0, 9], True, np.array([True, False])]
ASSIGNED = [2.0, 3, 1j, np.float32(4.0), [1.0, 2.0], [1.0, 2j], np.ones(2), np.ones((2, 3)), np.complex64(1j), "5", "a"]
WRITERS = {
    "setitem": lambda t, i, v: t.__setitem__(i, v),
    "add": lambda t, i, v: t.__setitem__(i, t[i] + v) if not isinstance(v, str | list) else t.__setitem__(i, v),
    "flat": lambda t, i, v: t.flat.__setitem__(i if type(i) in (int, slice) else 0, v),
    "put": lambda t, i, v: np.put(t, [i] if isinstance(i, int) else [0], v),
    "place": lambda t, i, v: np.place(t, np.ones(np.shape(t), bool), v),
    "putmask": lambda t, i, v: np.putmask(t, np.ones(np.shape(t), bool), v),
    "copyto": lambda t, i, v: np.copyto(t, v),
    "fill": lambda t, i, v: t.fill(v),
}


@given(
    st.sampled_from(sorted(TARGETS)), st.sampled_from(sorted(WRITERS)), st.sampled_from(range(len(INDICES))),
    st.sampled_from(range(len(ASSIGNED))), st.sampled_from(["plain", *MODES]),
)  # fmt: skip
@settings(max_examples=400)
@pytest.mark.filterwarnings("ignore")
def test_drawn_writes_match_numpy_in_every_mode(target, writer, index, value, mode):
    """Tensors give NumPy's result or an error, never another value; errors of NumPy are raised too."""
    ours, theirs = TARGETS[target]
    index, value = INDICES[index], ASSIGNED[value]
    with contextlib.suppress(Exception):
        expected = theirs(np.array(POINT))
        try:
            WRITERS[writer](expected, index, value)
        except Exception:
            expected = None
    seen = []

    def program(s, v, m):
        written = ours(v / 2.0)
        WRITERS[writer](written, index, value)
        seen.append(np.array(written.detach()))

    run = MODES.get(mode, lambda program: outcome(program, leaf()))
    error, _ = run(program)
    if error is None and mode != "trace":
        assert expected is not None or target == "an array without dimensions", "NumPy raises"
        if expected is not None:
            np.testing.assert_array_equal(seen[0].ravel(), np.ravel(expected))
