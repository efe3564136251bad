"""The passes of the source compiler, each on the intermediate representation."""

import ast
import itertools
import textwrap

import numpy as np
import pytest

from viewgrad.compiler.source import ir
from viewgrad.compiler.source.adjoint import adjoint
from viewgrad.compiler.source.bounds import check_bounds
from viewgrad.compiler.source.build import build
from viewgrad.compiler.source.definitions import Definitions
from viewgrad.compiler.source.dependence import Access, has_solution, may_overwrite
from viewgrad.compiler.source.ir import Call, Check, Const, For, Get, Let, Op, Push, Set, Var, program_text, statements
from viewgrad.compiler.source.jumps import eliminate_jumps
from viewgrad.compiler.source.operation_count import count_operations
from viewgrad.compiler.source.read import Reader
from viewgrad.compiler.source.scalarize import scalarize
from viewgrad.compiler.source.string_codes import encode_strings
from viewgrad.compiler.source.sums import fuse_sums
from viewgrad.compiler.source.unsigned_indices import make_indices_unsigned
from viewgrad.compiler.source.value_types import FLOAT, INT, Arr, Num, joined, kind_of_operator
from viewgrad.compiler.source.values import NotSupported
from viewgrad.compiler.source.verify_ir import IRError, verify_program


def structured(text):
    (function,) = ast.parse(textwrap.dedent(text)).body
    return "\n".join(ast.unparse(stmt) for stmt in eliminate_jumps(function.body))


def test_code_after_a_jump_moves_into_the_other_branch():
    text = structured("""
        def f(x):
            for a in x:
                if a < 0:
                    continue
                use(a)
            return 1
    """)
    assert "else:\n        use(a)" in text
    assert "_skip" not in text


def test_flags_for_jumps_from_inside():
    text = structured("""
        def f(x):
            for a in x:
                if a:
                    if b:
                        break
                use(a)
            return 1
    """)
    assert "_stop1 = True" in text
    assert "if not _stop1:\n        use(a)" in text


def test_loops_that_may_return_end_the_loops_around_them():
    text = structured("""
        def f(x):
            for a in x:
                for b in a:
                    if b:
                        return b
                use(a)
            return 1
    """)
    assert "_stop2 = True" in text
    assert "_stop1 = True" in text
    assert text.count("_result = ") == 2


def test_strings_that_are_only_compared_become_numbers():
    def coded(text):
        (function,) = ast.parse(textwrap.dedent(text)).body
        return ast.unparse(encode_strings(function.body, [arg.arg for arg in function.args.args]))

    text = coded("""
        def f(x):
            mode = "rest"
            for v in x:
                if mode == "rest" and v > 0:
                    mode = "run"
                elif mode in {"run", "walk"}:
                    mode = "rest"
            return mode != "walk"
    """)
    assert "'" not in text
    assert "mode = 1" in text and "mode == 0" in text and "mode in (1, 2)" in text and "mode != 2" in text
    for use in ("use(mode)", "x[mode]", "mode < 'b'", "mode == x", "mode is None", "mode = x", "(mode := 'c')",
                "return mode", "f'{mode}'", "lambda mode: mode == 'a'", "global mode", "[v for mode in x]"):
        text = coded(f"""
            def f(x):
                mode = "a"
                if x:
                    mode = "b"
                {use}
                return mode == "b"
        """)
        assert "mode = 'a'" in text and "mode == 'b'" in text


# -- reading -----------------------------------------------------------------------------------------------------------


def read(f, *args):
    return Reader().source(f, args, {})


def text_of(f, *args):
    return program_text(read(f, *args).body)


def test_types_converge_in_loops():
    def f(x):
        s = 0
        for a in x:
            s = s + a
        return s

    source = read(f, np.ones(3))
    assert source.kinds["s"].dtype == "d"


def test_elementwise_trees_are_kept_and_calls_are_separated():
    def f(x, y):
        return x * np.dot(x, y) + np.sin(y)

    assert text_of(f, np.ones(2), np.ones(2)) == (
        "t = dot(x, y)\n_result = add(mul(x, t), sin(y))"
    )


def test_views_of_views_are_one_index():
    def f(x):
        return x[1][2] + x[1, 0:][0]

    assert "x[1, 2]" in text_of(f, np.ones((3, 4)))


@pytest.mark.parametrize(("construct", "reason"), [
    ("with open('f'): pass", "the only supported `with` is np.errstate that ignores or warns"),
    ("global RATE", "`global` is not supported"),
    ("print(x)", "print() with these arguments is not supported"),
    ("x.append(1)", "method append of an array is not supported"),
    ("y = [{} for a in x]", "a record in a list of unknown length is not supported"),
    ("y = [x]; y.append([x[0]])", "a list with items of several types is not supported"),
    ("y = float(x[0])", "float() detaches a value"),
])
def test_errors_name_the_line(construct, reason, tmp_path):
    path = tmp_path / "module.py"
    path.write_text(f"def f(x):\n    {construct}\n    return x.sum()\n")
    space = {}
    exec(compile(path.read_text(), str(path), "exec"), space)
    with pytest.raises(NotSupported) as found:
        read(space["f"], np.ones(3))
    assert found.value.reason == reason
    assert found.value.line == 2


def test_dtype_kinds_of_operators_match_numpy():
    assert kind_of_operator("add", (Num("f"), Num("d", weak=True))) == Num("f")
    assert kind_of_operator("add", (Num("l"), Num("d", weak=True))) == Num("d")
    assert kind_of_operator("div", (INT, INT)) == Num("d", weak=True)
    assert kind_of_operator("mul", (Arr("d", 2), Arr("d", 1))) == Arr("d", 2)
    assert kind_of_operator("less", (Arr("d", 1), FLOAT)) == Arr("?", 1)
    assert joined(INT, FLOAT) == Num("d", weak=True, least="l")
    assert joined(FLOAT, Arr("d", 1)) is None


# -- integers ----------------------------------------------------------------------------------------------------------


def test_inequalities():
    assert not has_solution([], [{"i": 1, "": -5}, {"i": -1, "": 4}])  # i >= 5 and i <= 4
    assert has_solution([], [{"i": 1, "": -5}, {"i": -1, "": 5}])
    assert not has_solution([{"i": 2, "j": -2, "": 1}], [])  # 2i + 1 == 2j
    assert not has_solution([{"i": 1, "j": -1}], [{"i": 1, "j": -1, "": -1}])  # i == j and i > j


def loop(name, low, high, step=1):
    return For(name, low, high, step, [])


N, I, J, K = [Var(name, INT) for name in "nijk"]


def number(value):
    return Const(value, INT)


def test_recurrences_overwrite_nothing_that_was_read():
    t = loop("i", number(1), N)
    read = Access("x", (Op("sub", (I, number(1)), INT),), (t,), 1)
    ahead = Access("x", (Op("add", (I, number(1)), INT),), (t,), 1)
    write = Access("x", (I,), (t,), 2)
    assert not may_overwrite(write, read, {"n"}.__contains__)
    assert may_overwrite(write, ahead, {"n"}.__contains__)


def test_bounds_of_triangular_loops_count():
    k = loop("k", number(0), N)
    i = loop("i", Op("add", (K, number(1)), INT), N)
    read = Access("a", (K, K), (k, i), 1)
    write = Access("a", (I, K), (k, i), 2)
    assert not may_overwrite(write, read, {"n"}.__contains__)


# -- the adjoint -------------------------------------------------------------------------------------------------------


def pushed(f, *args):
    source = read(f, *args)
    names = [each.name for each in source.inputs]
    definitions = Definitions(source.body, names)
    body = check_bounds(source.body, definitions)
    taken = set(source.kinds)

    def fresh(name):
        number = 1
        while f"{name}{number}" in taken:
            number += 1
        taken.add(f"{name}{number}")
        return f"{name}{number}"

    made = adjoint(body, dict(source.kinds), names, [source.result.name], fresh, definitions)
    return [program_text([stmt]) for stmt in statements(made.forward) if isinstance(stmt, Push)]


def test_recurrences_save_nothing():
    def f(p, y):
        level = np.zeros(len(y))
        total = 0.0
        for t in range(1, len(y)):
            error = y[t] - level[t - 1]
            total = total + error * error
            level[t] = level[t - 1] + p[0] * error
        return total

    assert pushed(f, np.ones(1), np.ones(4)) == []


def test_factorisations_save_pivot_columns_only():
    def lu(a0):
        n = len(a0)
        a = a0.copy()
        for k in range(n - 1):
            for i in range(k + 1, n):
                a[i, k] /= a[k, k]
                for j in range(k + 1, n):
                    a[i, j] -= a[i, k] * a[k, j]
        return a[0, 0]

    assert pushed(lu, np.ones((3, 3))) == []  # a quotient has its gradient from its value


def test_overwritten_states_are_kept_if_a_gradient_reads_them():
    def linear(x):
        s = 0.0
        for a in x:
            s = 0.5 * s + a
        return s

    def quadratic(x):
        s = 0.0
        for a in x:
            s = s * s + a
        return s

    assert pushed(linear, np.ones(3)) == []
    assert pushed(quadratic, np.ones(3)) == ["push s"]


def test_branches_with_a_recomputable_test_save_nothing():
    def f(x):
        s = 0.0
        for i in range(len(x)):
            if i > 2:
                s += 2 * x[i]
            elif x[i] > 0.0:
                s -= x[i]
        return s

    assert pushed(f, np.ones(3)) == []


# -- bounds and verification -------------------------------------------------------------------------------------------


def test_indices_are_shown_to_be_in_range_or_checked_once():
    def f(x, y):
        n = len(x)
        table = np.zeros(n + 1)
        for i in range(n):
            table[i + 1] = table[i] + x[i] * y[i]
        return table[n]

    source = read(f, np.ones(3), np.ones(3))
    body = check_bounds(source.body, Definitions(source.body, ["x", "y"]))
    checks = [stmt for stmt in statements(body) if isinstance(stmt, Check)]
    assert len(checks) == 1
    assert "y.shape[0]" in program_text(checks)


def safe_reads(f, *args):
    source = read(f, *args)
    body = check_bounds(source.body, Definitions(source.body, [each.name for each in source.inputs]))
    return {ir.text_of(node): node.safe for stmt in statements(body) for expr in ir.expressions_of(stmt)
            for node in ir.nodes(expr) if isinstance(node, Get)}


def test_branches_show_that_indices_are_in_range():
    def f(x, y):
        s = 0.0
        for i in range(len(x)):
            if i > 0 and x[i - 1] < 1.0:
                s += x[i - 1] * y[i - 1]
            s += x[i + 1] if i < len(x) - 1 else 0.0
            if i != 0:
                s += x[i - 1]
            else:
                s += x[i - 2]
        return s

    found = safe_reads(f, np.ones(3), np.ones(3))
    assert found["x[sub(i, 1)]"] and found["x[add(i, 1)]"]
    assert not found["x[sub(i, 2)]"] and not found["y[sub(i, 1)]"]


def test_columns_in_branches_are_checked_ahead():
    def f(x):
        s = 0.0
        for i in range(len(x)):
            for j in range(len(x)):
                if i != j:
                    s += x[i, 0] * x[j, 1]
        return s

    assert all(safe_reads(f, np.ones((3, 2))).values())


def test_the_verifier_finds_violations():
    x = Var("x", Arr("d", 1))
    kinds = {"x": x.kind, "y": FLOAT}
    verify_program([Let("y", Get(x, (number(0),), FLOAT))], kinds, ["x"])
    for wrong in (
        Let("x", x),
        Let("z", Const(1.0, FLOAT)),
        Let("y", Get(x, (number(0), number(0)), FLOAT)),
        Let("y", Op("sin", (Call("sum", (x,), (), FLOAT),), FLOAT)),
    ):
        with pytest.raises(IRError):
            verify_program([wrong], kinds, ["x"])


# -- operations on arrays in loops -------------------------------------------------------------------------------------


def lowered(f, *args):
    source = read(f, *args)
    names = [each.name for each in source.inputs]
    numbers = itertools.count(1)
    kinds = dict(source.kinds)
    block = scalarize(source.body, kinds, names, lambda name: f"{name}_{next(numbers)}")
    return program_text(verify_program(block, kinds, names))


def test_slices_in_loops_become_loops_over_elements():
    def f(u, rate):
        for _ in range(5):
            u[1:-1] += rate * u[0]
        return u[0]

    text = lowered(f, np.ones(5), 2.0)
    assert "for e_2 in 0, sub(sub(u.shape[0], 1), 1), 1:" in text
    assert "u[add(e_2, 1)] += c_1" in text


def test_overlapping_operands_go_through_a_buffer():
    def shifted(u):
        for _ in range(5):
            u[1:] += u[:-1]
        return u[0]

    def same(u):
        for _ in range(5):
            u[1:] += 2 * u[1:]
        return u[0]

    assert "buffer" in lowered(shifted, np.ones(5))
    assert "buffer" not in lowered(same, np.ones(5))


def test_operands_without_overlapping_write_need_no_buffer():
    def rows(y, a):
        for i in range(1, len(y)):
            y[i] = a * y[i - 1]
        return y[0, 0]

    def columns(a):
        for k in range(len(a) - 1):
            a[k + 1 :, k] = a[k + 1 :, k] - a[k, k] * a[k + 1 :, k + 1]
        return a[0, 0]

    def panels(a):
        for k in range(len(a) - 1):
            a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
        return a[0, 0]

    def spread(a):
        for k in range(len(a) - 1):
            a[k:, k:] -= np.outer(a[k:, k], a[k, k:])
        return a[0, 0]

    assert "buffer" not in lowered(rows, np.ones((5, 3)), 2.0)
    assert "buffer" not in lowered(columns, np.ones((5, 5)))
    text = lowered(panels, np.ones((5, 5)))
    assert "outer" not in text
    assert "mul(a[add(e_" in text
    assert "outer" in lowered(spread, np.ones((5, 5)))  # it reads its target, and stays in NumPy


def test_in_place_operands_are_computed_once():
    def f(a, x):
        a -= np.outer(x, x)
        return a[0, 0]

    assert program_text(read(f, np.ones((2, 2)), np.ones(2)).body).count("outer") == 1


def test_sums_of_one_array_keep_no_terms():
    def summed(f, *args):
        source = read(f, *args)
        return program_text(fuse_sums(source.body, [source.result.name]))

    assert "sum(square(x))" in summed(lambda x: (x * x).sum(), np.ones(3))
    assert "sum(mul(exp(x[1:]), x[1:]))" in summed(lambda x: (np.exp(x[1:]) * x[1:]).sum(), np.ones(3))
    assert "sum(t)" in summed(lambda x, y: (x * y).sum(), np.ones(3), np.ones((2, 3)))  # which broadcasts
    assert "sum(t)" in summed(lambda x, a: (x + a).sum(), np.ones(3), 2.0)  # a is added to each element

    def used_again(x):
        terms = x * x
        return terms.sum() + terms[0]

    assert "sum(square" not in summed(used_again, np.ones(3))


def test_the_gradient_of_a_sum_needs_no_shadow_of_its_terms():
    def f(x):
        return (x * x).sum()

    program = build(read(f, np.ones(3)), [0], "python", False)
    assert program.written.host.count("np.zeros") == 1  # of the gradient itself


def test_conditions_are_checked_once():
    def f(a):
        for k in range(len(a) - 1):
            a[k + 1 :] = a[k + 1 :] + 2.0 * a[k + 1 :]
        return a[0]

    def ahead(a, m):
        for k in range(m):
            a[k:] = a[k:] + 2.0 * a[k:]
        return a[0]

    def checks(f, *args):
        source = read(f, *args)
        names = [each.name for each in source.inputs]
        kinds, numbers = dict(source.kinds), itertools.count(1)
        block = scalarize(source.body, kinds, names, lambda name: f"{name}_{next(numbers)}")
        block = check_bounds(block, Definitions(block, names))
        return [program_text([stmt]) for stmt in statements(block) if isinstance(stmt, Check)]

    assert checks(f, np.ones(5)) == []
    assert checks(ahead, np.ones(5), 3) == ["check less_equal(k, a.shape[0])"]


def test_views_in_loops_are_replaced_by_their_arrays():
    def f(table):
        for i in range(1, len(table)):
            row = table[i]
            row[1:] *= table[i - 1, 0]
        return table[0, 0]

    text = lowered(f, np.ones((3, 3)))
    assert "row" not in text
    assert "table[i, add(" in text


def test_rebound_arrays_become_one_array():
    def f(a, x):
        v = x * 1.0
        for _ in range(5):
            v = a @ v
        return v[0]

    text = lowered(f, np.ones((3, 3)), np.ones(3))
    assert "matmul" not in text
    assert "+= mul(a[" in text


def test_shared_arrays_are_not_reused():
    def f(x):
        v = x * 1.0
        for _ in range(5):
            w = v
            v = v * 2.0
            w[0] = 1.0
        return v[0]

    assert "v = mul(v, 2.0)" in lowered(f, np.ones(3))


def backward_text(f, *args):
    """Return the text of the reverse of a program."""
    source = read(f, *args)
    wanted = [n for n, each in enumerate(source.inputs) if each.kind.dtype == "d"]
    return build(source, wanted, "python", wraps=False).text.partition("-- backwards")[2]


def test_copied_parameters_have_separate_names():
    def lu(a):
        a = a.copy()
        n = len(a)
        for k in range(n - 1):
            for i in range(k + 1, n):
                a[i, k] /= a[k, k]
                for j in range(k + 1, n):
                    a[i, j] -= a[i, k] * a[k, j]
        return a[0, 0]

    assert pushed(lu, np.ones((3, 3))) == []


def test_available_values_are_not_recomputed():
    def f(x):
        y = np.zeros(len(x))
        for i in range(len(x)):
            y[i] = np.exp(x[i])
        return y.sum()

    assert "exp(x" not in backward_text(f, np.ones(3))


def test_cells_that_a_loop_adds_to_are_summed_in_variables():
    def f(p, x):
        s = 0.0
        for i in range(len(x)):
            s = s * p[0] + p[1] * x[i]
        return s

    text = backward_text(f, np.ones(2), np.ones(3))
    loop = text[text.index("for i down") : text.index("if not_equal")]
    assert "p_bar[" not in loop

    def g(a):  # reads the cell by an index that may be equal
        b = a.copy()
        for i in range(len(a)):
            b[i] = b[0] * 2.0 + b[i]
        return b.sum()

    text = backward_text(g, np.ones(3))
    assert "total" not in text


def test_terms_of_the_adjoint_of_a_number_are_added_in_any_order():
    def scaled(x, a):
        b = a[0] * 2.0
        s = 0.0
        for i in range(len(x)):
            s += x[i] * b
        return s

    def multiplied(x, a):
        b = a[0] * 2.0
        s = 1.0
        for i in range(len(x)):
            s = s * b + x[i]
        return s

    def reverse(f):
        return build(read(f, np.ones(3), np.ones(1)), [0, 1], "numba", wraps=False).text.partition("backwards")[2]

    assert "b_bar = plus(b_bar" in reverse(scaled)
    assert "s_bar = plus" not in reverse(multiplied)


def test_computed_indices_are_unsigned():
    lines = ["def f(x, k, n):", "    x[k[n - 1], 0] += x.shape[0] * x[at(n, x.shape[0]), n]", "    return 'ä', x[n]"]
    assert make_indices_unsigned("\n".join(lines)).splitlines()[1:] == [
        "    x[unsigned(k[unsigned(n - 1)]), 0] += x.shape[0] * x[unsigned(at(n, x.shape[0])), unsigned(n)]",
        "    return 'ä', x[unsigned(n)]",
    ]


def test_checks_that_an_outer_loop_does_not_change_are_made_once():
    def f(a, b):
        s = 0.0
        for i in range(len(a)):
            for j in range(len(a)):
                s += a[i] * b[j, 0]
        return s

    text = build(read(f, np.ones(3), np.ones((3, 1))), [], "python", wraps=False).text
    assert text.index("check") < text.index("for i")
    assert text.count("check") == 1


def test_conditions_of_branches_are_used_by_dependence_tests():
    def cholesky(a):
        n = len(a)
        l = np.zeros((n, n))
        for i in range(n):
            for j in range(i + 1):
                s = a[i, j]
                for k in range(j):
                    s -= l[i, k] * l[j, k]
                if i == j:
                    l[i, i] = np.sqrt(s)
                else:
                    l[i, j] = s / l[j, j]
        return l[-1, -1]

    assert not any(each.startswith("push l") for each in pushed(cholesky, np.eye(3)))


def test_the_adjoint_of_a_sum_continues_in_the_previous_variable():
    def f(x):
        s = 0.0
        for v in x:
            s = 0.5 * v + s
        return s

    text = backward_text(f, np.ones(3))
    assert "s_bar = 0.0" not in text[text.index("for k down") : text.index("v_bar = 0.0")]


def test_copies_of_numbers_are_one_variable():
    def rates(u, v):
        return v, -u

    def f(x):
        u, v = 1.0, 0.0
        for each in x:
            a, b = rates(u, v)
            u, v = u + a * each, v + b * each
        return u * v

    source = read(f, np.ones(3))
    text = build(source, [], "python", wraps=False).text
    assert "rates" not in text
    assert "b = neg(u)" in text


def test_values_of_one_iteration_are_not_carried_to_another():
    def f(x):
        s = 1.0
        for i in range(len(x)):
            e = np.exp(s * x[i])
            s = s + e * x[i]
        return s

    source = read(f, np.ones(3))
    program = build(source, [0], "python", wraps=False)
    assert "push e\n" in program.text and program.text.index("push e") > program.text.index("e = exp")
    assert not any("e" in kernel.parameters or "e" in kernel.results for kernel in program.written.kernels)


def test_loops_that_only_add_run_forwards():
    def f(a, x):
        s = 0.0
        for i in range(len(x)):
            total = 0.0
            for j in range(len(x)):
                total += a[i, j] * x[j]
            s += total * total
        return s

    def running(x):
        y = np.zeros(len(x) + 1)
        for i in range(len(x)):
            y[i + 1] = y[i] * x[i]
        return y[-1]

    source = read(f, np.ones((3, 3)), np.ones(3))
    (_, back) = build(source, [0, 1], "numba", wraps=False).written.kernels
    assert "for j in range(" in back.source and "for j in range(x.shape[0] - 1" not in back.source
    assert "for i in range(x.shape[0] - 1, -1, -1)" in back.source
    (_, back) = build(read(running, np.ones(3)), [0], "numba", wraps=False).written.kernels
    assert "for i in range(x.shape[0] - 1, -1, -1)" in back.source


def test_partial_derivatives_are_combined_before_the_adjoint():
    def newton(a, start):
        x = start[0]
        while abs(x * x - a[0]) > 1e-10:
            x = x - (x * x - a[0]) / (2.0 * x)
        return x

    source = read(newton, np.ones(1), np.ones(1))
    binding = []
    for executor in ("python", "numba"):
        back = build(source, [0, 1], executor, wraps=False).text.partition("-- backwards")[2]
        binding.append(sum(line.startswith("    x_bar = ") for line in back.splitlines()))  # in the loop
    assert binding[1] == 1 < binding[0]


def test_lists_in_lists_are_numbers_of_lists_on_a_heap():
    def table(x):
        rows = [[0.0] * len(x) for _ in range(3)]
        other = rows[0]
        rows[0], rows[1] = rows[1], rows[0]
        other[0] = x[0]
        return rows[1][0] * x[1]

    source = read(table, np.ones(2))
    made = {name for name, kind in source.kinds.items() if name.startswith("heap") and isinstance(kind, Arr)}
    assert made == {"heap"}  # a heap of floats; lists of numbers are stored in place
    writes = [stmt.value for stmt in statements(source.body) if isinstance(stmt, Set) and stmt.base.name == "items"]
    assert len(writes) == 3 and all(value.kind == INT for value in writes)  # a row is appended, two are swapped


def pairwise(x, n):
    total = 0.0
    for i in range(len(x)):
        for j in range(i):
            total += (x[i] - x[j]) ** 2
    for _ in range(n):
        total += np.sum(np.exp(x))
    return total


@pytest.mark.parametrize("length, n", [(10, 0), (40, 3), (2000, 0), (20, 500)])
def test_operations_are_counted_from_shapes_and_bounds(length, n):
    source = read(pairwise, np.ones(3), 2)
    counted = count_operations(source.body, [each.name for each in source.inputs], [np.ones(length), n])
    exact = length * (length - 1) / 2 * 3 + n * (2 * length + 1)
    assert 0.5 * exact <= counted <= 2 * exact + 10
