"""Programs drawn as source text from tables of idiomatic NumPy lines, run on arrays and on tensors.

Nothing here depends on the implementation. NumPy defines the meaning of a line, and lines that it refuses are
skipped. Values, dtypes, scalars and shared memory are compared after the last line, and gradients with differences.
"""

from __future__ import annotations

import functools
import random
import re
import warnings

import numpy as np

import viewgrad as vg
from viewgrad.autograd import forward_ad
from viewgrad.tensor.tensor import is_scalar

UFUNCS = "sin cos tanh arctan square negative positive conjugate exp sinh abs exp2 expm1 cbrt arcsinh".split()
PAIRS = "add subtract multiply maximum minimum arctan2 hypot logaddexp fmax fmin copysign heaviside".split()
REDUCTIONS = "sum mean prod var std max min ptp nansum nanmean nanmax nanmin nanprod nanstd median".split()
MODES = ["constant", "edge", "reflect", "wrap", "symmetric"]
SUBSCRIPTS = ["ij->ji", "ij->i", "ii", "ii->i", "i->", "i...->...", "...i->...", "ijk->ikj"]
PRODUCTS = ["ij,jk->ik", "ij,ij->i", "i,i", "i,j->ij", "ij,j", "...i,...i->..."]

# {a}: any array. {b}: what can be broadcast with it. {c}: an array of its shape. {mask}: one for its shape. {index}: an
# index for it. {axis}: a dimension. {axes}: a dimension, or None. {places}: some indices along the first dimension.
EXPRESSIONS = [
    "{a}.copy().reshape(-1, order='A')", "np.broadcast_to({a}, (2, *{a}.shape)).flatten('K')", "{a}[::2].ravel()",
    "{a}[..., ::2].ravel()", "{a}.conj()", "np.average({a}, weights=np.full({a}.shape, 0.3, np.float16))",
    "np.average({a}, axis={axes}, weights=np.full({a}.shape, 0.3, np.float16))", "np.{ufunc}({a})",
    "np.{pair}({a}, {b})", "np.{pair}({b}, {a})", "{a} {sign} {b}", "{number} {sign} {a}",
    "np.true_divide({a}, np.abs({b}) + 1.5)", "np.power(np.abs({a}) + 0.5, {b})", "{a} ** {power}",
    "np.{reduction}({a}, axis={axes})", "np.{reduction}({a}, axis={axes}, keepdims=True)", "{a}.{method}()",
    "np.{sums}({a}, axis={axes}, where={mask})", "np.{sums}({a}, axis={axes}, where={mask}, keepdims=True)",
    "np.{sums}({a}, axis={axes}, dtype={dtype})", "np.{extremes}({a}, axis={axes}, initial=0.4, where={mask})",
    "np.{sums}({c}, axis={axes}, initial=0.5)", "np.{running}({a}, axis={axes})", "np.{running}({a}, dtype={dtype})",
    "np.add.reduce({a}, axis={axis})", "np.multiply.accumulate({a}, axis={axis})", "np.add.reduceat({a}, [0, 1, 0])",
    "np.subtract.outer({a}, {a})", "{a}[{index}]", "{a}[{index}]", "{a}[{index}]", "{a}[{index}]", "{a}[{advanced}]",
    "{a}[{advanced}]", "np.take({a}, {places}, axis={axes}, mode='{mode}')", "{a}.take({places}, {axes})",
    "np.take_along_axis({a}, np.argsort({a}.real, axis={axis}, kind='stable'), axis={axis})",
    "np.where({mask}, {a}, {b})",
    "np.where({a}.real > 0.5, {a}, {b})", "np.select([{a}.real > 0.9, {mask}], [{a}, {c}], default=0.5)",
    "np.choose({mask}.astype(int), [{a}, {c}])", "np.extract({mask}, {a})",
    "{a}.compress([True, False, True], {axes})", "np.compress([True, False, True], {a}, axis={axes})",
    "np.concatenate([{a}, {c}], axis={axes})", "np.{stack}([{a}, {c}])", "np.block([[{a}, {a}], [{c}, {a}]])",
    "np.append({a}, {c})", "np.tile({a}, (2, 1))", "np.repeat({a}, 2, axis={axes})",
    "np.pad({a}, (1, 2), mode='{pad}')", "np.roll({a}, {shift}, axis={axes})", "np.diff({a}, n={order}, axis={axis})",
    "np.diff({a}, prepend=0.5, axis={axis})", "np.ediff1d({a}, to_begin=0.25)", "np.sort({a}.real, axis={axes})",
    "np.partition({a}.real, 1, axis={axis})", "np.unique({a}.real)", "np.{matrix}({a}, {offset})", "{a}.diagonal()",
    "{a}.trace()", "np.{product}({a}, {c})", "{a} @ {c}.T", "{a}.dot({c})", "np.einsum('{subscripts}', {a})",
    "np.einsum('{products}', {a}, {c})", "np.tensordot({a}, {c}, 1)", "np.{shape}({a})", "{a}.{view}", "{a}.{view}",
    "{a}.ravel('{order_}')", "{a}.flatten('{order_}')", "{a}.copy('{order_}')",
    "np.reshape({a}, {sizes}, order='{layout}')", "{a}.reshape({sizes})", "np.moveaxis({a}, 0, {axis})",
    "{a}.swapaxes(0, {axis})", "np.expand_dims({a}, {axis})", "np.split({a}, 1, axis={axis})[0]", "next(iter({a}))",
    "np.array_split({a}, 2, axis={axis})[-1]", "np.broadcast_to({a}, (2, *{a}.shape))", "np.atleast_2d({a})",
    "[*{a}][-1]", "np.lib.stride_tricks.sliding_window_view({a}, 2, axis={axis})", "{a}.view(float)",
    "{a}.view(complex)", "{a}.astype(complex)", "np.clip({a}.real, -0.5, 1.1)",
    "np.percentile({a}.real, [10, 60], axis={axes})", "np.average({a}, axis={axes}, weights=np.abs({c}) + 0.5)",
    "np.gradient({a}, axis={axis})", "np.cross({a}, {c})", "np.linalg.norm({a})", "np.linalg.norm({a}, axis={axis})",
    "np.linalg.det({a} + 3 * {eye})", "np.angle({a})", "np.linalg.inv({a} + 4 * {eye})",
    "np.linalg.solve({a} + 4 * {eye}, {c})", "np.fft.fft({a})", "np.fft.irfft({a})", "np.convolve({a}, {c})",
    "np.delete({a}, 0, axis={axes})", "np.insert({a}, 1, 0.5, axis={axes})", "sum({a})",
    "np.full_like({a}, 0.5) * {a}", "np.add({a}, {b}, where={mask}, out=np.zeros_like({a}))", "np.nan_to_num({a})",
    "np.multiply({a}, {b}, dtype=complex)", "np.meshgrid({a}, {c})[0]", "np.polyval({a}, {c})", "np.kron({a}, {c})",
]  # fmt: skip
# {t}: an array that is written to. {value}: a value that broadcasts to it. {w}, {v}: a window of it, a value for it.
STATEMENTS = [
    "row = {t}[...]; row @= {t}", "row = {t}[...]; row **= 2", "row = {t}; row += {value}", "{w} = {v}", "{w} = {v}",
    "{w} = {v}", "{w} += {v}", "{w} *= {v}", "{w} -= {v}", "{w} /= 1.5 + np.cos({v})", "{w} **= {power}",
    "{w} = {t}[{index}]", "{t} += {value}", "{t} *= {value}", "{t} -= {value}", "{t} @= {t}",
    "{t}[{index}], {t}[{again}] = {t}[{again}], {t}[{index}]", "{t}[{advanced}] = {number}",
    "{t}[{advanced}] += {number}", "np.{plain_pair}({value}, {value}, out={t})",
    "np.{plain_pair}({value}, {value}, out={t}, where={mask})", "np.{plain_ufunc}({value}, {t})",
    "np.{plain_ufunc}({value}, out={t}, where={mask})", "np.copyto({t}, {value})",
    "np.copyto({t}, {value}, where={mask})", "np.putmask({t}, {mask}, {value})",
    "np.place({t}, {mask}, [0.25, 0.75])", "np.put({t}, {places}, [0.3, 0.6])", "{t}.put([0], 0.3)",
    "np.add.at({t}, {places}, {number})", "{t}.fill({number})", "np.multiply.at({t}, {places}, 0.5)",
    "np.put_along_axis({t}, np.zeros((1,) * {t}.ndim, int), 0.5, 0)", "{t}.sort({axis})", "{t}.partition(1)",
    "{t}.flat[1:3] = [0.1, 0.2]", "{t}.flat[-1] = {number}", "np.fill_diagonal({t}, 0.5)",
    "for row in {t}: row *= {number}", "for k in range(1, len({t})): {t}[k] = {t}[k - 1] * 0.5 + {t}[k] * 0.7",
    "for k in range(len({t}) - 1): {t}[k + 1] += {t}[k] ** 2 * 0.2", "np.cumsum({t}, axis=0, out={t})",
    "np.sum({a}, axis=0, out={t})", "np.matmul({a}, {a}, out={t})", "np.dot({a}, {a}, out={t})",
    "np.concatenate([{a}, {a}], out={t})",
    "{t}.real[...] = {value}", "{t}.imag *= {number}", "{t}.T[...] *= {number}", "{t}[{t}.real > 0.8] *= 0.5",
    "{t}[...] = {t}[::-1]", "{t}[...] = {t}.T", "{t}[1:] += {t}[:-1]", "{t}[:-1] -= {t}[1:]",
    "np.clip({t}, -1, 1, out={t})", "np.add({t}[1:], {t}[:-1], out={t}[1:])", "np.multiply({t}, {t}, out={t})",
    "np.ravel({t})[:2] = 0.25", "np.einsum('ii->i', {t})[...] = {number}", "{t}[np.array(0)] += 1.0",
    "np.nan_to_num({t}, copy=False)",
]  # fmt: skip
WORDS = {
    "ufunc": UFUNCS, "plain_ufunc": UFUNCS[:8], "pair": PAIRS, "plain_pair": PAIRS[:5], "reduction": REDUCTIONS,
    "sums": ["sum", "mean", "prod", "var", "std"], "extremes": ["max", "min"], "running": ["cumsum", "cumprod"],
    "sign": ["+", "-", "*"], "power": ["2", "3", "1.0", "2.0"], "order": ["0", "1", "2"], "offset": ["0", "1", "-1"],
    "method": ["sum", "mean", "prod", "var", "std", "cumsum", "cumprod", "conj", "copy", "squeeze"],
    "dtype": ["float", "complex", "np.float32", "np.longdouble"], "mode": ["wrap", "clip", "raise"],
    "stack": ["stack", "vstack", "hstack", "dstack", "column_stack"], "pad": MODES, "shift": ["1", "-2"],
    "matrix": ["tril", "triu", "diag", "trace", "diagonal"], "subscripts": SUBSCRIPTS, "products": PRODUCTS,
    "product": ["dot", "matmul", "inner", "outer", "vdot"], "order_": ["C", "F", "A", "K"], "layout": ["C", "F", "A"],
    "shape": ["transpose", "ravel", "squeeze", "atleast_1d", "copy", "real", "imag", "conj", "flip", "rot90"],
    "view": ["T", "real", "imag", "ravel()", "flatten()", "conj()", "reshape(-1)", "transpose()", "squeeze()"],
    "sizes": ["-1", "(-1, 1)", "(1, -1)", "(2, -1)", "(-1, 2)", "(3, -1)"],
    "number": ["0.5", "2.0", "-1.5", "3", "np.float64(0.7)", "True", "np.float32(0.5)"],
}  # fmt: skip
SHAPES = [(3,), (4,), (2, 3), (3, 3), (3, 2), (2, 2, 3), (1, 4), (5,), (), (2, 0, 3), (4, 1)]
DTYPES = [float] * 7 + [complex, complex, np.float32, np.float16, np.longdouble]
LARGEST = 30.0
NUMBERS = (np.ndarray, np.generic)


# Reinterpreted bits have no derivative; NumPy's out= with other dimensions is not supported.
ALLOWED = ("cannot be viewed as", "more dimensions than allowed", "but the result has shape ()")


class Wrong(AssertionError):
    """Raised if the results of tensors differ from those of arrays."""


class Refused(AssertionError):
    """Raised if tensors reject arguments that arrays accept."""


class SourceProgram:
    """Leaves and lines, drawn from a seed.

    Arguments:
        seed: the seed; equal seeds draw equal programs.
        length: the maximum number of lines.
    """

    def __init__(self, seed: int, length: int = 8) -> None:
        self.random = random.Random(seed)
        self.rng = np.random.default_rng(seed)
        self.seed = seed
        self.leaves = {f"x{i}": self.leaf() for i in range(self.random.choice([1, 1, 2, 2, 3]))}
        self.lines: list[str] = []
        self.arrays = self.run(fresh(self.leaves))
        for _ in range(6 * length):
            if len(self.lines) < length:
                self.try_line()

    def leaf(self):
        shape, dtype = self.random.choice(SHAPES), self.random.choice(DTYPES)
        array = self.rng.uniform(0.3, 1.7, shape) * self.rng.choice([1, 1, 1, -1], shape)
        array = np.asarray(array + 1j * self.rng.uniform(-1, 1, shape) if dtype is complex else array, dtype)
        layout = self.random.choice("CCFR")
        if layout == "R" and array.ndim:
            return np.ascontiguousarray(array[::-1])[::-1]
        return np.asfortranarray(array) if layout == "F" else array

    def run(self, names):
        return run_lines(self.lines, names)

    # -- drawing -------------------------------------------------------------------------------------------------------

    def try_line(self) -> None:
        targets = self.targets()
        if targets and self.random.random() < 0.55:
            line = self.filled(self.random.choice(STATEMENTS), self.random.choice(targets))
        else:
            line = f"v{len(self.lines)} = " + self.filled(self.random.choice(EXPRESSIONS), None)
        if line is None or crashes_numpy(line, self.arrays):
            return
        self.lines.append(line)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if "where=" in line:  # if memory overlaps, NumPy casts and writes back elements that where= excludes
                    warnings.simplefilter("error", np.exceptions.ComplexWarning)
                arrays = self.run(fresh(self.leaves))
        except Exception:  # NumPy refuses it
            self.lines.pop()
            return
        is_alike = not is_another_matter(line, arrays) and self.is_same_with_copies(arrays)
        if is_alike and all(is_tame(arrays[name]) for name in arrays if name[0] in "xv"):
            self.arrays = arrays
        else:
            self.lines.pop()

    def is_same_with_copies(self, arrays) -> bool:
        """Return whether the last line has the same result if each value is copied before it is assigned.

        In one dimension NumPy assigns element by element, even if the value and its target overlap.
        """
        line = self.lines[-1]
        swap = re.fullmatch(r"(\w+)\[(.*)\], \1\[(.*)\] = \1\[\3\], \1\[\2\]", line)
        assignment = re.fullmatch(r"([\w.]+\[[^=]*\]) = ([^=]*)", line)
        if swap:
            name, one, other = swap.groups()
            copied = f"o, p = {name}[{other}], {name}[{one}]; {name}[{one}] = +o; {name}[{other}] = +p; del o, p"
        elif assignment:
            copied = f"{assignment[1]} = np.array({assignment[2]})"
        else:
            return True
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            others = run_lines([*self.lines[:-1], copied], fresh(self.leaves))
        return all(np.array_equal(arrays[name], others[name], equal_nan=True) for name in arrays if name[0] in "xv")

    def names(self, fits=lambda array: True):
        return [
            name for name, array in self.arrays.items()
            if name[0] in "xv" and isinstance(array, NUMBERS) and array.dtype.kind in "fc" and fits(array)
        ]  # fmt: skip

    def targets(self):
        roots = [root_of(self.arrays[leaf]) for leaf in self.leaves]
        return [
            name for name in self.names(lambda array: isinstance(array, np.ndarray) and array.flags.writeable)
            if name[0] == "v" and all(root_of(self.arrays[name]) is not root for root in roots)
        ]  # fmt: skip

    def filled(self, template, target):
        """Return the template with all its words filled in, or None if a word has no expression."""
        words: dict[str, str] = {}
        array = self.arrays[target] if target else None
        if target is None or "{a}" in template:
            words["a"] = self.random.choice(self.names()[-5:])
        if target is None:
            array = self.arrays[words["a"]]
        else:
            words["t"] = target
        shape = array.shape
        fitting = self.names(lambda other: other.shape == shape)
        words |= {name: self.random.choice(options) for name, options in WORDS.items()}
        words["c"] = self.random.choice(fitting or [words["number"]])
        words["b"] = words["value"] = self.operand(shape)
        words["axis"] = str(self.random.randrange(-array.ndim, array.ndim)) if array.ndim else "0"
        words["axes"] = self.random.choice([words["axis"], "None"])
        words["mask"] = f"np.array({(self.rng.random(shape) < 0.7).tolist()})"
        words["eye"] = f"np.eye({shape[-1] if shape else 1})"
        words["places"] = str(self.rng.integers(-len(array), len(array), 2).tolist() if shape and len(array) else [0])
        words["index"], words["again"] = self.basic(shape), self.basic(shape)
        words["advanced"] = self.advanced(shape)
        if "{w}" in template:
            index = self.random.choice([words["index"], words["index"], words["advanced"]])
            try:
                window = np.asarray(array[eval(f"np.index_exp[{index}]", {"np": np})])
            except IndexError:
                return None
            words["w"], words["v"] = f"{target}[{index}]", self.operand(window.shape)
        return template.format(**words)

    def operand(self, shape):
        def fits(array):
            try:
                return np.broadcast_shapes(array.shape, shape) == shape
            except ValueError:
                return False

        names = self.names(fits)
        if not names or self.random.random() < 0.2:
            return self.random.choice(WORDS["number"])
        return self.random.choice(names)

    def slice_of(self, extent):
        ends = [self.random.choice(["", "", "", *map(str, range(-extent - 1, extent + 2))]) for _ in range(2)]
        return ":".join(ends) + self.random.choice(["", "", "", ":1", ":2", ":-1", ":-2"])

    def basic(self, shape):
        """Return an index of integers, slices, None and dots."""
        count = self.random.randint(0, len(shape))
        from_behind = self.random.random() < 0.25
        extents = (shape[len(shape) - count :] if from_behind else shape[:count]) if count else ()
        items = ["..."] if from_behind or not count else []
        for extent in extents:
            whole = extent and self.random.random() < 0.35
            items.append(str(self.random.randrange(-extent, extent)) if whole else self.slice_of(extent))
        if self.random.random() < 0.15:
            items.insert(self.random.randint(0, len(items)), "None")
        return ", ".join(items)

    def advanced(self, shape):
        """Return an index with arrays in it."""
        if not shape or 0 in shape:
            return "..."

        def numbers(extent, size):
            return f"np.array({self.rng.integers(-extent, extent, size).tolist()})"

        kinds = [numbers(shape[0], self.random.choice([1, 2, 3, (2, 2), 0]))]
        kinds.append(str(self.rng.integers(0, shape[0], 2).tolist()))
        kinds.append(f"np.array({(self.rng.random(shape) < 0.6).tolist()})")
        kinds.append(f"np.array({(self.rng.random(shape[:1]) < 0.6).tolist()})")
        if len(shape) > 1:
            pair = f"{numbers(shape[0], 2)}, {numbers(shape[1], 2)}"
            kinds += [pair, f"{self.slice_of(shape[0])}, {numbers(shape[1], 2)}", f"..., {numbers(shape[-1], 2)}"]
            kinds.append(f"np.ix_([0, {shape[0] - 1}], [{shape[1] - 1}, 0])")
            kinds.append(f"{numbers(shape[0], 2)}, None, {self.slice_of(shape[1])}")
        return self.random.choice(kinds)

    def __str__(self) -> str:
        used = [name for name in self.leaves if any(name in line for line in self.lines)]
        told = [f"{name} = np.{np.array_repr(self.leaves[name])}" for name in used]
        return "\n".join([f"# source program {self.seed}", *told, *self.lines])


# -- running and comparing ---------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=2_000)
def compiled(line):
    return compile(line, "<source program>", "exec")


def run_lines(lines, names):
    names = {"np": np} | names
    for line in lines:
        exec(compiled(line), names)
    return names


def fresh(leaves):
    return {name: leaf.copy(order="K") for name, leaf in leaves.items()}


def root_of(array):
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def is_another_matter(line, arrays) -> bool:
    """Return whether tensors need not agree with NumPy on the result of a line, or on its memory."""
    # A tensor's view of the bits of its numbers is a copy, except for the parts of complex numbers.
    bits, place = re.search(r"(\w+)[.]view[(](float|complex)", line), re.search(r"matmul.*out=(\w+)", line)
    if bits and arrays[bits[1]].dtype not in (float, complex):
        return True
    # NumPy assigns a matrix of one row to an element as if it were a vector.
    if place and not np.ndim(arrays[place[1]]):
        return True
    # The slope of the cubic root is infinite at zero.
    return "cbrt" in line and not all(np.all(arrays[name]) for name in re.findall(r"[xv]\d+", line))


def crashes_numpy(line, arrays) -> bool:
    """Return whether NumPy may access memory outside an empty array (the diagonal by einsum of an array of shape
    (0, 1)) or may not return (`take` with mode="wrap").
    """
    has_empty = any(isinstance(value, NUMBERS) and not value.size for value in arrays.values())
    return has_empty and ("einsum('ii" in line or ("take(" in line and "wrap" in line))


def is_tame(value):
    if not isinstance(value, NUMBERS):
        return False
    return value.size <= 60 and bool(np.isfinite(value).all()) and float(np.abs(value).max(initial=0)) <= LARGEST


def total_of(names):
    """Return a number that depends on everything that the lines have bound."""
    total = 0.0
    for name, value in names.items():
        if name[0] == "v" and value.dtype.kind in "fc":
            weights = np.cos(np.arange(value.size).reshape(value.shape) * 1.3 + int(name[1:])).astype(value.real.dtype)
            term = (value * weights).sum()
            total = total + (term.real if value.dtype.kind == "c" else term)
    return total


def check(program) -> bool:
    """Run a program on tensors and compare the results; return whether the gradient could be compared.

    Raises:
        Wrong: if anything differs.
        Refused: if tensors refuse an operation of arrays.
    """
    tensors = {name: vg.Tensor(leaf.copy(order="K"), requires_grad=True) for name, leaf in program.leaves.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = program.run(dict(tensors))
        except Exception as error:
            if any(text in str(error) for text in ALLOWED):
                return False
            raise Refused(f"{type(error).__name__}: {error}\n{program}") from error
        compare_values(program, found)
        return compare_gradients(program, tensors, found)


def compare_values(program, found) -> None:
    expected = {name: array for name, array in program.arrays.items() if name[0] == "v"}
    kinds = {array.dtype for name, array in program.arrays.items() if name[0] in "xv" and array.dtype.kind in "fc"}
    kinds |= {np.dtype(np.float32)} if any("float32" in line for line in program.lines) else set()
    tolerance = max(1e-10, *(64 * float(np.finfo(dtype).eps) for dtype in kinds))  # of the least precise dtype
    for name, array in expected.items():
        tensor = found[name]
        if not isinstance(tensor, vg.Tensor):
            raise Wrong(f"{name} is no tensor\n{program}")
        if tensor.shape != array.shape or tensor.dtype != array.dtype:
            raise Wrong(f"{name} is {tensor.dtype} {tensor.shape}, not {array.dtype} {array.shape}\n{program}")
        if not np.allclose(tensor.detach().numpy(), array, rtol=tolerance, atol=tolerance):
            raise Wrong(f"{name} is {tensor.detach().numpy()}, not {array}\n{program}")
        if not array.ndim and is_scalar(tensor) == isinstance(array, np.ndarray):
            raise Wrong(f"{name} is {'a scalar' if is_scalar(tensor) else 'an array'}\n{program}")
    arrays = [name for name, array in expected.items() if isinstance(array, np.ndarray)]
    for i, name in enumerate(arrays):
        for other in arrays[:i]:
            shared = np.shares_memory(expected[name], expected[other])
            if np.shares_memory(found[name]._array, found[other]._array) != shared:
                raise Wrong(f"{name} and {other} share memory: {not shared}\n{program}")


def compare_gradients(program, tensors, found) -> bool:
    total = total_of({name: value for name, value in found.items() if isinstance(value, vg.Tensor)})
    leaves = program.leaves
    along = 0.0
    directions = {
        name: (program.rng.uniform(0.3, 1, leaf.shape) + (1j if leaf.dtype.kind == "c" else 0)).astype(leaf.dtype)
        for name, leaf in leaves.items()
    }
    if isinstance(total, vg.Tensor) and total.requires_grad:
        gradients = vg.autograd.grad(total, list(tensors.values()), allow_unused=True)
        for (name, leaf), gradient in zip(leaves.items(), gradients):
            if gradient is not None and (gradient.shape != leaf.shape or gradient.dtype != leaf.dtype):
                raise Wrong(f"the gradient of {name} is {gradient.dtype} {gradient.shape}\n{program}")
            if gradient is not None:
                along += float((gradient.numpy().conj() * directions[name]).real.sum())
    single = [value for value in program.arrays.values() if getattr(value, "dtype", None) in SINGLE]
    if single:  # too coarse for differences
        return False
    compare_forward_mode(program, directions, along)
    slopes = [slope(program, directions, step) for step in (1e-5, 3e-6, 4e-5)]
    if not max(slopes) - min(slopes) <= 1e-5 * (1 + abs(slopes[0])):  # at a kink
        return False
    if not abs(along - slopes[0]) <= 3e-5 * (1 + abs(slopes[0])):
        raise Wrong(f"the gradient along a direction is {along}, not {slopes[0]}\n{program}")
    return True


def compare_forward_mode(program, directions, along) -> None:
    """Check that forward mode agrees with reverse mode, also at kinks."""
    number = tangent(program, directions, 0.0)
    if np.isfinite(along) and not abs(number - along) <= 1e-8 * (1 + abs(along)):
        ends = [tangent(program, directions, step) for step in (1e-14, 2e-14)]  # on the same side of a kink
        if abs(ends[0] - ends[1]) <= 1e-6 * (1 + abs(ends[0])):  # else rounding errors decide, as in angle(fft(zeros))
            raise Wrong(f"the tangent is {number}, and not {along}, as backwards\n{program}")


def tangent(program, directions, step) -> float:
    """Return the slope by forward mode at the leaves, moved by a step."""
    with forward_ad.dual_level():
        duals = {
            name: forward_ad.make_dual(vg.Tensor(moved(leaf, step, directions[name])), vg.Tensor(directions[name]))
            for name, leaf in program.leaves.items()
        }
        found = program.run(duals)
        total = total_of({name: value for name, value in found.items() if isinstance(value, vg.Tensor)})
        along = forward_ad.unpack_dual(total).tangent if isinstance(total, vg.Tensor) else None
        return 0.0 if along is None else float(along.numpy())


def moved(leaf, step, direction):
    copied = leaf.copy(order="K")
    copied += step * direction
    return copied


SINGLE = (np.float16, np.float32, np.complex64)


def slope(program, directions, step) -> float:
    """Return the slope by differences; infinite if lines that choose by values no longer have matching shapes."""
    ends = []
    for sign in (1, -1):
        leaves = {name: moved(leaf, sign * step, directions[name]) for name, leaf in program.leaves.items()}
        try:
            ends.append(float(total_of(program.run(leaves))))
        except (ValueError, IndexError):
            return np.inf
    return (ends[0] - ends[1]) / (2 * step)


def shortened(program, kind):
    """Return the program without lines that are not needed for an error of the same kind."""
    lines = list(program.lines)
    for i in reversed(range(len(lines))):
        program.lines = lines[:i] + lines[i + 1 :]
        try:
            program.arrays = program.run(fresh(program.leaves))
            check(program)
        except kind:
            lines = program.lines
        except Exception:
            continue
    program.lines = lines
    program.arrays = program.run(fresh(program.leaves))
    return program
