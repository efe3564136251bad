"""After an interruption anywhere, each tensor has the gradient of its value, or refuses to be differentiated.

The programs are interrupted at lines throughout the library; those marked slow, at every bytecode.
"""

import contextlib
import importlib.util
import signal
import sys
import threading
from contextvars import copy_context

import numpy as np
import pytest
from interruptions import Interrupter, interruptions, modes

import viewgrad as vg
import viewgrad.tensor.node
from viewgrad.autograd import Function, forward_ad, grad, gradcheck
from viewgrad.errors import AutogradError, InterruptedWriteError
from viewgrad.symbolic import function_of, trace
from viewgrad.views.basic_indexing import _write_number

# Generators that were interrupted.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
WEIGHTS = np.array([1.0, -2.0, 3.0, 0.5])
MASK = np.array([True, False, True, False])


@pytest.fixture(autouse=True)
def no_patience(monkeypatch):
    monkeypatch.setattr(viewgrad.tensor.node, "PATIENCE", 0.0)


class State:
    """A leaf, a tensor computed from it, a view of that, and something computed from the view's first value."""

    def __init__(self):
        self.leaf = vg.Tensor([0.5, 2.0, -1.0, 3.0], requires_grad=True)
        self.base = self.leaf * 1.0
        self.view = self.base[1:3]
        self.early = self.base * self.base
        self.early_of_view = self.view * self.view

    def outcomes(self):
        """Return the values of all tensors, each with its gradient, or None if the gradient is refused."""
        pairs = []
        for name in ("base", "view", "early", "early_of_view"):
            tensor = getattr(self, name)
            weighted = (tensor * WEIGHTS[: tensor.size]).sum()
            if not weighted.requires_grad:
                pairs.append((tensor.tolist(), "no history"))
                continue
            try:
                (found,) = grad(weighted, self.leaf, retain_graph=True, materialize_grads=True)
                pairs.append((tensor.tolist(), found.tolist()))
            except InterruptedWriteError:
                pairs.append((tensor.tolist(), None))
        return pairs


def tripled(ctx, x):
    ctx.mark_dirty(x)
    return x.mul_(3.0)


class Triple(Function):
    forward = staticmethod(tripled)
    backward = staticmethod(lambda ctx, g: 3.0 * g)
    jvp = staticmethod(lambda ctx, t: t.mul_(3.0))


class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    backward = staticmethod(lambda ctx, g: 2.0 * g * ctx.saved_tensors[0])
    jvp = staticmethod(lambda ctx, t: 2.0 * t * ctx.saved_tensors[0])


def element_augmented(s):
    s.base[1] *= s.leaf[0]


def element_of_a_view_augmented(s):
    s.view[1] += s.leaf[3] * s.base[0]


WRITES = {
    "an element from elements": lambda s: s.base.__setitem__(1, s.base[0] * s.base[2] - s.leaf[3] / s.base[1]),
    "an element augmented": element_augmented,
    "an element of a view augmented": element_of_a_view_augmented,
    "mul_": lambda s: s.base.mul_(2.0),
    "mul_ by the leaf": lambda s: s.base.mul_(s.leaf),
    "exp_, which saves its result": lambda s: s.base.exp_(),
    "on a view": lambda s: s.view.mul_(s.leaf[:2]),
    "on a view of a view": lambda s: s.view[1:].mul_(s.leaf[:1]),
    "on a reshaped view": lambda s: s.base.reshape(2, 2).T.mul_(vg.Tensor([[1.0, 2.0], [3.0, 4.0]])),
    "one element": lambda s: s.base.__setitem__(1, s.leaf[0] * s.leaf[0]),
    "a slice": lambda s: s.base.__setitem__(slice(1, 3), s.leaf[:2]),
    "a constant": lambda s: s.base.__setitem__(slice(1, 3), 5.0),
    "a slice of a view": lambda s: s.view.__setitem__(slice(0, 1), s.leaf[3:]),
    "augmented": lambda s: s.base.__setitem__(slice(0, 2), s.base[:2].__iadd__(s.leaf[2:])),
    "arrays": lambda s: s.base.__setitem__([0, 2], s.leaf[:2] * 2),
    "an array twice": lambda s: s.base.__setitem__([0, 0], s.leaf[:2] * 2),
    "mask": lambda s: s.base.__setitem__(MASK, s.leaf[:2] * 2),
    "arrays into a view": lambda s: s.view.__setitem__([1], s.leaf[:1] * 2),
    "copy_": lambda s: s.base.copy_(s.leaf * s.leaf),
    "copy_ into a view": lambda s: s.view.copy_(s.leaf[:1]),
    "fill_": lambda s: s.base.fill_(3.0),
    "out=": lambda s: np.multiply(s.base, s.leaf, out=s.base),
    "where=": lambda s: np.multiply(s.base, s.leaf, out=s.base, where=MASK),
    "index_accumulate_": lambda s: s.base.index_accumulate_([0, 0], s.leaf[:2]),
    "copy_where_": lambda s: s.base.copy_where_(s.leaf * 2, MASK),
    "clip_": lambda s: s.base.clip_(0.0, 2.0),
    "Function in place": lambda s: Triple.apply(s.base),
    "Function in place on a view": lambda s: Triple.apply(s.view),
    "Function": lambda s: Square.apply(s.base),
    "retained": lambda s: (s.base.retain_grad(), s.view.retain_grad(), s.base.mul_(s.leaf)),
    "detach_": lambda s: s.base.detach_(),
}


def references(act):
    before, after = State(), State()
    act(after)
    return before.outcomes(), after.outcomes()


def assert_right_or_refused(state, before, after, where):
    for (value, gradient), old, new in zip(state.outcomes(), before, after, strict=True):
        if gradient is not None:
            assert (value, gradient) in (old, new), f"interrupted at {where}: {value} with gradient {gradient}"


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("replay", [False, True])
def test_writes(name, replay):
    act = WRITES[name]
    refused = whole = 0
    with vg.view_replay(replay):
        before, after = references(act)
        for state, where in interruptions(State, act, stride=5 if replay else 2):
            assert_right_or_refused(state, before, after, where)
            refused += any(gradient is None for _, gradient in state.outcomes())
            whole += 1
            # Values overwritten by well-defined values are well-defined, unless the write is refused.
            try:
                state.base.copy_(state.leaf)
            except InterruptedWriteError:
                continue
            assert grad(state.base.sum(), state.leaf)[0].tolist() == [1.0] * 4, where
    assert whole


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITES)
def test_writes_at_every_bytecode(name):
    act = WRITES[name]
    before, after = references(act)
    for state, where in interruptions(State, act, bytecodes=True):
        assert_right_or_refused(state, before, after, where)


@pytest.mark.parametrize("act", [lambda s: s.base.mul_(s.leaf), lambda s: s.base.__setitem__([0, 2], s.leaf[:2])])
def test_values_saved_earlier_survive_a_write_after_an_interruption(act):
    """Windows that an interrupted write removed from the registry are preserved by the next write."""
    before, _ = references(act)
    for state, where in interruptions(State, act, bytecodes=True, stride=7):
        with vg.no_grad():
            state.base.fill_(7.0)
        outcomes = state.outcomes()
        assert [gradient for _, gradient in outcomes[2:]] == [gradient for _, gradient in before[2:]], where


def test_scalars_that_absorb_their_sources(monkeypatch):
    """The gradient is the same whether absorption is complete or was interrupted."""

    monkeypatch.setitem(_write_number.__globals__, "MANY_WRITES", -1)

    class Scalar:
        def __init__(self):
            self.leaf = vg.Tensor([0.5, 2.0, -1.0, 3.0], requires_grad=True)
            self.made = vg.exp(-self.leaf[0]) * vg.log(self.leaf[1]) + self.leaf[2] * self.leaf[3]
            self.later = self.made * self.leaf[0]

    def outcome(state):
        return [grad(tensor, state.leaf, retain_graph=True)[0].tolist() for tensor in (state.made, state.later)]

    expected = outcome(Scalar())
    for state, where in interruptions(Scalar, lambda s: vg.zeros(1).__setitem__(0, s.made), bytecodes=True, stride=3):
        assert outcome(state) == expected, where
        assert grad(state.made * 2.0, state.leaf)[0].tolist() == [2 * each for each in expected[0]], where


class Dual(State):
    """The same inside a dual level, at which its tensors have tangents."""

    def outcomes(self):
        pairs = []
        for tensor in (self.base, self.view, self.early, self.early_of_view):
            try:
                tangent = forward_ad.unpack_dual(tensor).tangent
                pairs.append((tensor.tolist(), [0.0] * tensor.size if tangent is None else tangent.tolist()))
            except InterruptedWriteError:
                pairs.append((tensor.tolist(), None))
        return pairs

    def __init__(self):
        self.leaf = forward_ad.make_dual(vg.Tensor([0.5, 2.0, -1.0, 3.0]), vg.Tensor([1.0, 0.5, 2.0, -1.0]))
        self.base = self.leaf * 1.0
        self.view = self.base[1:3]
        self.early = self.base * self.base
        self.early_of_view = self.view * self.view


@pytest.mark.parametrize("name", [name for name in WRITES if name not in ("Function", "retained", "detach_")])
def test_tangents(name):
    act = WRITES[name]
    with forward_ad.dual_level():
        before, after = Dual(), Dual()
        act(after)
        before, after = before.outcomes(), after.outcomes()
        for state, where in interruptions(Dual, act, stride=4):
            for (value, tangent), old, new in zip(state.outcomes(), before, after, strict=True):
                if tangent is not None:
                    assert (value, tangent) in (old, new), f"interrupted at {where}: {value} with tangent {tangent}"


@pytest.mark.parametrize("name", ["mul_ by the leaf", "on a view", "a slice", "mask", "copy_ into a view"])
def test_functionalized_writes(name):
    act = WRITES[name]
    before, after = references(act)

    def run(state):
        return vg.func.functionalize(lambda: act(state), adopt=False)()

    for state, where in interruptions(State, run, stride=11):
        assert_right_or_refused(state, before, after, where)


# -- compiled programs -------------------------------------------------------------------------------------------------


def smoothed(y, x):
    for i in range(1, 4):
        y[i] = y[i - 1] * 0.5 + y[i] * x[i]
    return (y * x).sum()


@pytest.fixture
def compiled():
    """Return a compiled function that writes to its first argument, called until its program runs."""
    function = vg.compile(smoothed, executor="python")
    for _ in range(4):
        state = State()
        function(state.base, state.leaf)
    assert "CopyBackwards" in repr(state.base.grad_fn)
    return function


@pytest.mark.parametrize("stride", [17, pytest.param(1, marks=pytest.mark.slow)])
def test_compiled_programs_that_write(compiled, stride):
    def act(state):
        compiled(state.base, state.leaf)

    before, after = references(act)
    for state, where in interruptions(State, act, stride=stride):
        assert_right_or_refused(state, before, after, where)
        following = State()
        act(following)
        assert following.outcomes() == after, f"the call after one that was interrupted at {where}"


# -- backward passes ---------------------------------------------------------------------------------------------------


def of_arrays(leaf):
    y = leaf * 1.0
    y[1:] *= y[:-1]
    z = Square.apply(y)
    z[0] = y.sum()
    return (z * WEIGHTS).sum()


def of_scalars(leaf):
    y = leaf * 1.0
    total = y[0]
    for i in range(1, 4):
        y[i] = y[i] * y[i - 1] + y[i] / leaf[0]
        total = total - y[i] * total
    return total * np.exp(-y[2])


def of_views(leaf):
    y = leaf * 1.0
    y.reshape(2, 2).T.mul_(vg.Tensor([[1.0, 2.0], [3.0, 4.0]]))
    y[[0, 2, 2]] = y[1:] * y[:3]
    return (y[::-1] * WEIGHTS).sum()


PROGRAMS = [of_arrays, of_scalars, of_views, "compiled"]


def check_interrupted_passes(program, kind, stride):
    reference = vg.Tensor([0.5, 2.0, -1.0, 3.0], requires_grad=True)
    program(reference).backward()

    def prepare():
        leaf = vg.Tensor(reference.tolist(), requires_grad=True)
        return leaf, program(leaf)

    def act(state):
        leaf, value = state
        if kind in ("backward", "plain"):
            value.backward()
        else:
            grad(value, leaf, create_graph=kind == "recorded")

    if kind == "plain":
        with vg.autograd.graph.plain_engine():
            found = list(interruptions(prepare, act, stride=stride))
    else:
        found = list(interruptions(prepare, act, stride=stride))
    for (leaf, value), where in found:
        if leaf.grad is not None:
            np.testing.assert_allclose(leaf.grad, reference.grad, rtol=1e-14, err_msg=where)
        try:
            (found,) = grad(value, leaf)
        except AutogradError as error:
            assert "released" in str(error)
        else:
            np.testing.assert_allclose(found, reference.grad, err_msg=where)


@pytest.mark.parametrize("kind", ["backward", "grad", "recorded", "plain"])
@pytest.mark.parametrize("stride", [149, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("program", PROGRAMS)
def test_backward_passes(program, kind, stride, request):
    if program == "compiled":
        function = request.getfixturevalue("compiled")
        program = lambda leaf: function(leaf * 1.0, leaf)
    check_interrupted_passes(program, kind, stride)


@pytest.mark.parametrize("stride", [1999, pytest.param(11, marks=pytest.mark.slow)])
@pytest.mark.parametrize("program", PROGRAMS[:3])
def test_backward_passes_over_dual_tensors(program, stride):
    """The tangents of gradients are correct, or absent if the pass was interrupted."""

    def prepare():
        leaf = vg.Tensor([0.5, 2.0, -1.0, 3.0], requires_grad=True)
        return leaf, program(forward_ad.make_dual(leaf, vg.Tensor([1.0, 0.5, 2.0, -1.0])))

    def act(state):
        leaf, value = state
        return forward_ad.unpack_dual(grad(value, leaf, retain_graph=True)[0])

    with forward_ad.dual_level():
        gradient, tangent = act(prepare())
        for state, where in interruptions(prepare, act, stride=stride):
            again = act(state)
            np.testing.assert_allclose(again.primal, gradient, rtol=1e-13, err_msg=where)
            np.testing.assert_allclose(again.tangent, tangent, rtol=1e-13, err_msg=where)


# -- functions that fail -----------------------------------------------------------------------------------------------


def failing(before=None, after=None, mark=True):
    class Failing(Function):
        @staticmethod
        def forward(ctx, x):
            if mark:
                ctx.mark_dirty(x)
            if before:
                raise before
            x.mul_(2.0)
            if after:
                raise after
            return x if mark else x.clone()

        backward = staticmethod(lambda ctx, g: g * 2)

    return Failing


@pytest.mark.parametrize("window", [lambda y: y, lambda y: y[1:3], lambda y: y.reshape(2, 2)[:, 1]])
@pytest.mark.parametrize(
    "function",
    [failing(after=ValueError("no")), failing(after=KeyboardInterrupt()), failing(mark=False)],
    ids=["fails", "is interrupted", "is refused"],
)
def test_a_function_that_fails_after_it_wrote(function, window):
    state = State()
    with pytest.raises((ValueError, KeyboardInterrupt, AutogradError)):
        function.apply(window(state.base))
    with pytest.raises(InterruptedWriteError, match="failed during an in-place write"):
        grad(state.base.sum(), state.leaf)
    state.base.copy_(state.leaf * 3)
    assert grad(state.base.sum(), state.leaf)[0].tolist() == [3.0] * 4
    assert vg.is_grad_enabled()


def test_a_function_that_fails_before_it_wrote_leaves_all_as_it_was():
    state = State()
    before = state.outcomes()
    with pytest.raises(ValueError, match="no"):
        failing(before=ValueError("no")).apply(state.base)
    assert state.outcomes() == before


def test_a_refused_write_leaves_all_as_it_was():
    state = State()
    before = state.outcomes()
    with vg.autograd.graph.forbid_mutation_on_saved_tensors(), pytest.raises(AutogradError):
        state.base.mul_(2.0)
    for write in (
        lambda: state.base.mul_(vg.ones(3)),
        lambda: state.base.__setitem__(slice(0, 2), vg.ones(3)),
        lambda: state.base.__setitem__(7, 1.0),
        lambda: state.base.__setitem__([0, 7], 1.0),
        lambda: state.view.copy_(vg.ones(5)),
        lambda: state.base.mul_(1j),
    ):
        with pytest.raises((ValueError, IndexError, TypeError)):
            write()
    assert state.outcomes() == before
    with forward_ad.dual_level():
        dual = Dual()
        before = dual.outcomes()
        for write in (lambda: dual.base.mul_(vg.ones(3)), lambda: dual.base.__setitem__([0, 7], 1.0)):
            with pytest.raises((ValueError, IndexError)):
                write()
        assert dual.outcomes() == before


# -- modes -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "switch",
    [vg.no_grad, vg.enable_grad, vg.inference_mode, forward_ad.dual_level, vg.view_replay],
)
def test_interrupted_context_managers_restore_modes(switch):
    """Interrupting a block on entry, inside or on exit leaves no mode set.

    The exception is a signal at the very start of `__exit__`, which no Python context manager can guard.
    """

    def places():
        before = modes()
        for place in range(1000):
            interrupter = Interrupter(place, bytecodes=False)
            interrupted = interrupter.run(lambda: run(switch()))
            if modes() != before:
                assert "__exit__" in interrupter.where, interrupter.where
                return place
            if not interrupted:
                return place
        return 0

    def run(manager):
        with manager:
            vg.Tensor([1.0])

    assert copy_context().run(places) > 5


class AtExit(Interrupter):
    """Interrupts only the code that restores a mode at the end of a block, from its start."""

    def __call__(self, frame, event, argument):
        return super().__call__(frame, event, argument) if frame.f_code.co_name == "__exit__" else None


def squares(x):
    y = x * 1.0
    y[0] = y[1] * x[0]
    return (y * y).sum()


BLOCKS = {
    "isclose": lambda x: np.isclose(x, x * 2.0),
    "array_equal": lambda x: np.array_equal(x, x * 2.0),
    "batch_norm": lambda x: vg.batch_norm(x.reshape(3, 1), vg.zeros(1), vg.ones(1), training=True),
    "trace": lambda x: trace(squares, x),
    "graph": lambda x: function_of(squares, x)(x),
    "compiled": lambda x: vg.compile(squares, executor="python")(x),
    "hessian": lambda x: vg.func.hessian(squares)(x),
    "gradcheck": lambda x: gradcheck(squares, x),
}
if importlib.util.find_spec("scipy"):
    BLOCKS |= {
        "quad": lambda x: vg.scipy.integrate.quad(lambda t: np.sin(t * x[0]), 0.0, 1.0),
        "solve_ivp": lambda x: vg.scipy.integrate.solve_ivp(lambda t, y: -y * x[0], (0.0, 0.3), [1.0]),
        "root": lambda x: vg.scipy.optimize.root(lambda p: p * p - x, np.ones(3)),
        "minimize": lambda x: vg.scipy.optimize.minimize(lambda p: ((p - x) ** 2).sum(), np.ones(3)),
        "fmin_bfgs": lambda x: vg.scipy.optimize.fmin_bfgs(lambda p: ((p - x) ** 2).sum(), np.ones(3), disp=False),
    }


@pytest.mark.parametrize("act", BLOCKS.values(), ids=BLOCKS)
def test_interrupted_library_calls_restore_modes(act):
    """Modes that the library sets for its own code are restored, even after a signal at the very start of `__exit__`.
    """
    leaf = vg.Tensor([0.5, 1.5, 2.0], requires_grad=True)
    counting = AtExit(None, bytecodes=False)
    counting.run(lambda: act(leaf))
    before = modes()
    for place in range(min(counting.passed, 40)):
        interrupter = AtExit(place, bytecodes=False)
        with contextlib.suppress(AutogradError):  # raised by a block around the interrupted one
            interrupter.run(lambda: act(leaf))
        assert modes() == before, f"interrupted at {interrupter.where}"


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers")
def test_a_real_signal_during_writes():
    """A timer raises KeyboardInterrupt at arbitrary times."""

    def interrupt(number, frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    struck = 0
    try:
        for attempt in range(150):
            leaf = vg.Tensor([1.0, 1.0], requires_grad=True)
            y = leaf * 1.0
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0002 + attempt * 1e-6)
                for i in range(100000):
                    y *= 2.0
                    y[i % 2] *= 0.5
                    y[1 - i % 2] *= 0.5
            except KeyboardInterrupt:
                struck += 1
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0.0)
            assert vg.is_grad_enabled()
            try:
                (found,) = grad(y.sum(), leaf)
            except InterruptedWriteError:
                continue
            assert found.tolist() == y.tolist()
    finally:
        signal.signal(signal.SIGALRM, before)
    assert struck > 100


# -- threads -----------------------------------------------------------------------------------------------------------


def steps_of(kind, y, leaf, row, refused):
    """Return the operations of a thread on its row of `y`, or on memory shared with others."""
    factor = 1.0 + row / 8
    try:
        for step in range(15):
            if kind == "elements":
                y[row, step % 3] = y[row, step % 3] * factor + leaf[row]
            elif kind == "rows":
                y[row] *= factor
            elif kind == "views":
                y[row][1:].add_(leaf[row])
            else:
                y[0, 0] = y[0, 0] * 1.0
    except AutogradError as error:
        refused.append(error)


@pytest.mark.parametrize("kind", ["elements", "rows", "views", "one element"])
def test_threads_that_write_to_one_tensor(kind, monkeypatch):
    """The gradients are correct, or an error says that they are unavailable."""
    monkeypatch.setattr(viewgrad.tensor.node, "PATIENCE", 5.0)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    complete = 0
    try:
        for _ in range(6):
            leaf = vg.Tensor(np.linspace(1.0, 2.0, 4), requires_grad=True)
            shared, alone = (vg.zeros((4, 3)) + leaf[:, None] for _ in range(2))
            refused = []
            threads = [threading.Thread(target=steps_of, args=(kind, shared, leaf, row, refused)) for row in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            for row in range(4):
                steps_of(kind, alone, leaf, row, [])
            if not refused:
                complete += 1
                np.testing.assert_array_equal(shared.detach(), alone.detach())
                (found,) = grad(shared.sum(), leaf)
                (expected,) = grad(alone.sum(), leaf)
                np.testing.assert_allclose(found, expected)
    finally:
        sys.setswitchinterval(interval)
    assert complete or kind == "one element"


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITES)
def test_writes_at_every_line_with_replayed_views(name):
    act = WRITES[name]
    with vg.view_replay(True):
        before, after = references(act)
        for state, where in interruptions(State, act):
            assert_right_or_refused(state, before, after, where)
