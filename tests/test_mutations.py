"""Drawn programs detect each reinserted fault.

Like `test_drawn_programs_find_a_fault_in_the_library` in `test_programs.py`, for programs other than drawn steps.
"""

import sys
import types
from contextvars import copy_context
from importlib import import_module

import drawn_calls
import edge_case_programs
import numpy as np
import pytest
from drawn_calls import DrawnCall
from interruptions import PACKAGE, interruptions
from source_programs import Refused, SourceProgram, Wrong, check
from test_interruption import WRITES, Square, State, assert_right_or_refused, no_patience, references
from test_without_scipy import PROGRAM
from test_without_scipy import run as without_scipy

import viewgrad as vg
from viewgrad.autograd import forward_ad
from viewgrad.operators import OPERATORS
from viewgrad.operators.composites import COMPOSITES
from viewgrad.operators.derivatives import helpers
from viewgrad.operators.numpy_api import dispatch, reductions
from viewgrad.tensor.modes import MODE
from viewgrad.tensor.tensor import FUNCTIONS, as_scalar, is_scalar
from viewgrad.views import advanced_indexing

rebase_history = import_module("viewgrad.views.rebase_history")  # the package has the function by that name
ravel, getitem, setitem = vg.Tensor.ravel, vg.Tensor.__getitem__, vg.Tensor.__setitem__
astype, matmul, norm = vg.Tensor.astype, vg.Tensor.__matmul__, FUNCTIONS[np.linalg.norm]
FAULTS = {}


def fault(function):
    FAULTS[function.__name__] = function
    return function


def method(patch, name, function):
    patch.setattr(vg.Tensor, name, function)


class Entry:
    """An adapter in the table, which itself refuses to replace one; None for no adapter."""

    def __init__(self, numpy):
        self.numpy = numpy

    @property
    def adapter(self):
        return dict.get(FUNCTIONS, self.numpy)

    @adapter.setter
    def adapter(self, adapter):
        if adapter is None:
            dict.pop(FUNCTIONS, self.numpy, None)
        else:
            dict.__setitem__(FUNCTIONS, self.numpy, adapter)


def meaning(patch, numpy, function):
    patch.setattr(Entry(numpy), "adapter", function)


def scalar_of(result):
    return as_scalar(result) if not result.ndim and not is_scalar(result) else result


def numbers_for_arrays(index):
    items = index if type(index) is tuple else (index,)
    items = tuple(int(item) if isinstance(item, np.ndarray) and not item.ndim else item for item in items)
    return items if type(index) is tuple else items[0]


# -- values and gradients ----------------------------------------------------------------------------------------------


@fault
def unique_values_lose_their_gradient(patch):
    meaning(patch, np.unique, lambda x: vg.Tensor(np.unique(x.detach().numpy())))


@fault
def sort_does_nothing(patch):
    method(patch, "sort", lambda self, axis=-1: None)


@fault
def compress_swaps_its_arguments(patch):
    compress = FUNCTIONS[np.compress]
    method(patch, "compress", lambda self, axis, condition: compress(condition, self, axis))


@fault
def dtypes_of_reductions_are_ignored(patch):
    patch.setattr(reductions, "of_dtype", lambda result, dtype: result)
    patch.setattr(dispatch, "of_dtype", lambda result, dtype: result)


@fault
def variances_of_complex_numbers_square_without_conjugates(patch):
    def broken(self, axis=None, dtype=None, out=None, ddof=0, keepdims=False, **options):
        deviation = self - self.mean(axis, keepdims=True)
        return (deviation * deviation).real.mean(axis, keepdims=keepdims)

    meaning(patch, np.var, broken)


@fault
def percentiles_keep_single_precision(patch):
    meaning(patch, np.percentile, lambda a, q, axis=None: COMPOSITES["percentile"](a, q, axis))


@fault
def weights_are_summed_in_their_own_precision(patch):
    meaning(patch, np.average, lambda a, axis, weights: (a * weights).sum(axis) / weights.sum(axis))


@fault
def differences_of_order_zero_take_what_is_prepended(patch):
    diff = FUNCTIONS[np.diff]
    meaning(patch, np.diff, lambda a, n=1, axis=-1, **options: diff(a, n=n or 1, axis=axis, **options))


@fault
def products_in_place_bind_a_new_value(patch):
    method(patch, "__imatmul__", lambda self, other: matmul(self, other))


@fault
def elements_taken_twice_count_once(patch):
    def broken(self, accumulator, grad):
        accumulator[self.index] += grad

    patch.setattr(advanced_indexing.IndexBackward, "add_to", broken)


@fault
def the_last_of_several_values_is_not_known(patch):
    patch.setattr(advanced_indexing, "last_writers", lambda array, index: None)


@fault
def norms_have_the_gradient_of_their_square(patch):
    meaning(patch, np.linalg.norm, lambda x, axis=None: norm(x.detach(), axis=axis) + (x * x.conj()).real.sum(axis) * 0)


@fault
def elements_are_counted_in_rows_in_any_order(patch):
    method(patch, "flatten", lambda self, order="C": ravel(self).clone())


@fault
def masks_are_repeated_from_the_start(patch):
    meaning(patch, np.place, lambda arr, mask, vals: arr.copy_where_(vals[0], mask))


# -- who shares memory, and what is a scalar ---------------------------------------------------------------------------


@fault
def windows_with_gaps_are_raveled_without_a_copy(patch):
    method(patch, "ravel", lambda self, order="C": self.reshape(-1) if order == "C" else ravel(self, order))


@fault
def flattening_shares_memory(patch):
    method(patch, "flatten", lambda self, order="C": ravel(self, order))


@fault
def an_array_without_dimensions_is_a_number_as_an_index(patch):
    method(patch, "__getitem__", lambda self, index: getitem(self, numbers_for_arrays(index)))
    method(patch, "__setitem__", lambda self, index, value: None)


@fault
def a_diagonal_by_einsum_is_a_copy(patch):
    einsum = FUNCTIONS[np.einsum]
    meaning(patch, np.einsum, lambda *args: einsum(*args) * 1)


@fault
def conjugates_of_real_numbers_are_copies(patch):
    method(patch, "conj", lambda self: self if is_scalar(self) else OPERATORS["conj"].function(self.clone()))


@fault
def copies_keep_the_layout(patch):
    method(patch, "copy", lambda self, order="C": self if is_scalar(self) else self.clone())


@fault
def what_where_gives_is_a_scalar(patch):
    where = FUNCTIONS[np.where]
    meaning(patch, np.where, lambda *args: scalar_of(where(*args)))


@fault
def what_astype_gives_is_a_scalar(patch):
    method(patch, "astype", lambda self, dtype, *args: scalar_of(astype(self, dtype, *args)))


@fault
def what_tensordot_gives_is_a_scalar(patch):
    tensordot = FUNCTIONS[np.tensordot]
    meaning(patch, np.tensordot, lambda *args: scalar_of(tensordot(*args)))


@fault
def broadcast_dimensions_change_places(patch):
    order = lambda array: sorted(range(array.ndim), key=lambda dim: -abs(array.strides[dim]))
    patch.setattr(helpers, "memory_order", order)
    patch.setattr("viewgrad.operators.numpy_api.methods.memory_order", order)


# -- what is refused ---------------------------------------------------------------------------------------------------


@fault
def the_axis_of_expand_dims_is_not_known(patch):
    def broken(a, axis):
        raise TypeError("no axis")

    meaning(patch, np.expand_dims, broken)


@fault
def masks_take_values_of_their_own_shape_only(patch):
    def broken(self, mask, values):
        if np.ndim(values) and np.shape(values) != self.shape:
            raise ValueError("another shape")
        self.copy_where_(values, mask)

    meaning(patch, np.putmask, broken)


@fault
def what_is_joined_cannot_be_written_to_something(patch):
    join = FUNCTIONS[np.concatenate]
    meaning(patch, np.concatenate, lambda arrays, axis=0: join(arrays, axis=axis))


@fault
def products_cannot_be_written_to_something(patch):
    dot = FUNCTIONS[np.dot]
    meaning(patch, np.dot, lambda a, b: dot(a, b))


@fault
def windows_that_slide_are_not_known(patch):
    meaning(patch, np.lib.stride_tricks.sliding_window_view, None)


@fault
def elements_of_a_number_cannot_be_put(patch):
    def broken(self, ind, v, mode="raise"):
        self[np.unravel_index(np.asarray(ind), self.shape)] = v

    method(patch, "put", broken)


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.filterwarnings("ignore")
def test_source_programs_find_each_fault(name, monkeypatch):
    FAULTS[name](monkeypatch)
    with pytest.raises((Wrong, Refused, IndexError, TypeError, ValueError)):
        for seed in range(2500):
            check(SourceProgram(seed, 5))


# -- calls with options ------------------------------------------------------------------------------------------------


def extrema_divide_by_the_number_of_equal_ones(patch):
    greatest = FUNCTIONS[np.max]

    def broken(a, axis=None, **options):
        found = greatest(a, axis=axis, **options)
        equal = a.detach().numpy() == greatest(a.detach(), axis=axis, keepdims=True).numpy()
        shares = equal / equal.sum(axis, keepdims=True)  # 0 / 0 if the result is NaN
        return found.detach() + ((a - a.detach()) * shares).sum(axis, **options)

    meaning(patch, np.max, broken)


def polynomials_are_fitted_with_the_transpose(patch):
    fit = FUNCTIONS[np.polyfit]
    meaning(patch, np.polyfit, lambda x, y, deg: fit(x.conj() if x.is_complex() else x, y, deg))


def quantiles_of_single_values_are_where_others_are(patch):
    meaning(patch, np.nanquantile, COMPOSITES.get("nanquantile", OPERATORS["nanquantile"].function))


def sums_of_weights_keep_their_precision(patch):
    meaning(patch, np.bincount, OPERATORS["bincount"].function)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "name"),
    [
        (extrema_divide_by_the_number_of_equal_ones, "np.max("),
        (polynomials_are_fitted_with_the_transpose, "np.polyfit"),
        (quantiles_of_single_values_are_where_others_are, "np.nanquantile"),
        (sums_of_weights_keep_their_precision, "np.bincount"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_drawn_calls_find_each_fault(fault, name, monkeypatch):
    calls = [call for call in map(DrawnCall, range(20_000)) if name in call.text]
    fault(monkeypatch)
    with pytest.raises((drawn_calls.Wrong, ValueError)):
        for call in calls:
            drawn_calls.check(call)


# -- the edges of the library ------------------------------------------------------------------------------------------


def in_all_modules(patch, name, function):
    """Replace a function in all modules that import it, and in the globals of generated functions."""
    spaces = [vars(module) for key, module in list(sys.modules.items()) if key.startswith("viewgrad")]
    members = [member for space in [*spaces, vars(vg.Tensor)] for member in list(space.values())]
    spaces += [member.__globals__ for member in members if isinstance(member, types.FunctionType)]
    for space in {id(space): space for space in spaces}.values():
        for key in (name, name.removeprefix("_")):
            if callable(space.get(key)):
                patch.setitem(space, key, function)


def gradients_are_checked_along_ones_only(patch):
    in_all_modules(patch, "_check_linear", lambda *args: None)


def tangents_are_checked_along_ones_only(patch):
    in_all_modules(patch, "_check_linear_tangents", lambda *args: None)


def forward_mode_is_never_checked_alone(patch):
    check = edge_case_programs.gradcheck
    patch.setattr(
        edge_case_programs, "gradcheck", lambda *args, check_backward_ad=True, **options: check(*args, **options)
    )


def overlaps_are_left_to_numpy(patch):
    in_all_modules(patch, "_without_overlap", lambda source, window: source)


def tensors_of_tensors_have_no_history(patch):
    patch.setattr(vg.Tensor, "_refuse_detached_copy", lambda self, what: None)


def masks_are_lost(patch):
    in_all_modules(patch, "plain_array", lambda array: array.view(np.ndarray))


def what_is_left_on_ctx_is_not_kept(patch):
    in_all_modules(patch, "saved_attributes", lambda *args: [])


def foreign_operands_are_refused(patch):
    def asking_nobody(own):
        def method(self, other):
            found = own(self, other)
            if found is NotImplemented:
                raise TypeError("no operand")
            return found

        return method

    for name in edge_case_programs.NAMES:
        for spelling in (f"__{name}__", f"__i{name}__"):
            if hasattr(vg.Tensor, spelling):
                method(patch, spelling, asking_nobody(getattr(vg.Tensor, spelling)))


def duals_of_one_memory_do_not_hear_of_writes(patch):
    in_all_modules(patch, "update_aliases", lambda *args: None)


def tangents_of_tangents_are_dropped(patch):
    make = forward_ad.make_dual
    patch.setattr(forward_ad, "make_dual", lambda tensor, tangent: make(tensor, vg.Tensor(tangent._array)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (gradients_are_checked_along_ones_only, "checked_gradients"),
        (tangents_are_checked_along_ones_only, "checked_gradients"),
        (forward_mode_is_never_checked_alone, "checked_gradients"),
        (overlaps_are_left_to_numpy, "overlapping_writes"),
        (tensors_of_tensors_have_no_history, "made_of"),
        (masks_are_lost, "made_of"),
        (what_is_left_on_ctx_is_not_kept, "kept_values"),
        (foreign_operands_are_refused, "foreign_operands"),
        (duals_of_one_memory_do_not_hear_of_writes, "shared_duals"),
        (tangents_of_tangents_are_dropped, "shared_duals"),
    ],
)
def test_edge_case_programs_find_each_fault(fault, kind, monkeypatch):
    fault(monkeypatch)
    with pytest.raises((edge_case_programs.Wrong, NotImplementedError)):
        for seed in range(300):
            edge_case_programs.check(kind, seed)


UNDONE_BY_CODE = """
def isolated(function, *args):
    before = MODE.get()
    try:
        return function(*args)
    finally:
        MODE.set(before)
"""


@pytest.mark.slow
def test_interrupted_backward_passes_find_that_modes_are_left(monkeypatch):
    names = {"MODE": MODE}
    exec(compile(UNDONE_BY_CODE, PACKAGE + "fault.py", "exec"), names)  # the interruption occurs here
    in_all_modules(monkeypatch, "isolated", names["isolated"])
    with pytest.raises(AssertionError, match="a mode is left"):
        copy_context().run(lambda: list(interruptions(State, lambda s: s.base.sum().backward())))


@pytest.mark.slow
def test_interrupted_functions_find_that_modes_are_left(monkeypatch):
    in_all_modules(monkeypatch, "isolated", lambda function, *args: function(*args))
    with pytest.raises(AssertionError, match="a mode is left"):
        copy_context().run(lambda: list(interruptions(State, lambda s: Square.apply(s.base))))


@pytest.mark.slow
def test_calls_without_scipy_find_that_an_extra_is_not_named():
    fault = "from viewgrad.operators.lazy_imports import LazyModule\nLazyModule.is_installed = lambda self: True\n"
    with pytest.raises(AssertionError):
        without_scipy(PROGRAM.replace("import viewgrad as vg\n", f"import viewgrad as vg\n{fault}"))


# -- interruptions -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mul_ by the leaf", "a slice", "arrays", "Function in place"])
@pytest.mark.usefixtures(no_patience.__name__)
def test_interruptions_find_that_an_unfinished_write_is_not_refused(name, monkeypatch):
    act = WRITES[name]
    before, after = references(act)
    monkeypatch.setattr(rebase_history.InterruptedWrite, "apply", lambda self, grad, edges: (grad,))
    with pytest.raises(AssertionError, match="interrupted at"):
        for state, where in interruptions(State, act):
            assert_right_or_refused(state, before, after, where)
