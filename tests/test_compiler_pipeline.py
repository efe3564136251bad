"""The pipeline of passes, and the verifier of the loop IR between them."""

import attrs
import numpy as np
import pytest
from compiled_programs import PROGRAMS, holt_winters, kalman_with_gaps

import viewgrad as vg
from viewgrad.compiler import pipeline
from viewgrad.compiler.index_expr import ZERO, variable
from viewgrad.compiler.loop_ir import Buffer, Compute, ForLoop, Operand, Read, steps_of
from viewgrad.compiler.verification import verified_passes
from viewgrad.compiler.verify_ir import InvalidProgramError, verify_program


def compiled_program(f, *arrays):
    compiled = vg.compile(f, executor="python", check=False)
    leaves = [vg.Tensor(array, requires_grad=True) for array in arrays]
    with verified_passes():
        for _ in range(2):
            compiled(*leaves)
    return compiled.specializations[0].program


def smoothing():
    return compiled_program(holt_winters, np.array([0.1, 0.2, 0.3]), np.arange(12.0))


def test_passes_are_functions_of_programs_named_with_verbs():
    passes = [*pipeline.BEFORE_DIFFERENTIATION, *pipeline.OF_GRADIENT, *pipeline.AFTER_DIFFERENTIATION]
    verbs = {"reuse", "promote", "eliminate", "propagate", "coalesce"}
    assert {each.__name__.partition("_")[0] for each in passes} == verbs


@pytest.mark.parametrize("f", PROGRAMS)
def test_programs_are_valid_after_each_pass(f, monkeypatch):
    verified = []
    verify = pipeline.verify_program

    def noted(program, what):
        verified.append(what)
        verify(program, what)

    monkeypatch.setattr(pipeline, "verify_program", noted)
    compiled_program(f, *PROGRAMS[f](np.random.default_rng(0)))
    assert "the program after coalesce_buffers" in verified and "the program after promote_to_scalars" in verified


def test_no_program_is_verified_without_the_flag(monkeypatch):
    monkeypatch.setattr(pipeline, "verify_program", lambda *args: pytest.fail("it was verified"))
    compiled = vg.compile(lambda x: (x * x).sum(), executor="python")
    for _ in range(2):
        compiled(vg.ones(3, requires_grad=True))


def first_of(program, kind):
    return next((block, step) for block, step in steps_of(program.block) if isinstance(step, kind))


def use_before_definition(program):
    block, step = next((b, s) for b, s in steps_of(program.block) if isinstance(s, Compute) and s.operands)
    block.items.remove(step)
    block.items.insert(0, step)


def duplicate_name(program):
    (_, first), (_, second), *_ = steps_of(program.block)
    second.name = first.name


def unknown_buffer(program):
    _, step = first_of(program, Read)
    step.base = Buffer(step.base.name, 1, step.base.dtype, "made")


def wrong_labels(program):
    _, step = next(
        (b, s) for b, s in steps_of(program.block)
        if isinstance(s, Compute) and any(isinstance(v, Operand) for v in s.operands)
    )  # fmt: skip
    place = next(i for i, value in enumerate(step.operands) if isinstance(value, Operand))
    taken = list(step.operands)
    taken[place] = attrs.evolve(taken[place], labels=(*taken[place].labels, 0))
    step.operands = tuple(taken)


def unknown_variable(program):
    _, step = first_of(program, Read)
    step.offset = step.offset + variable("i999")


def missing_stride(program):
    _, step = first_of(program, Read)
    step.strides = (*step.strides, ZERO)


def missing_operand(program):
    _, step = first_of(program, Compute)
    step.expression = "{0} + {7}"


def nested_variable(program):
    loop = next(item for item in program.block.items if isinstance(item, ForLoop))
    loop.body.items.append(ForLoop(loop.variable, loop.count, attrs.evolve(loop.body, items=[], name="c999")))


@pytest.mark.parametrize("spoil", [
    use_before_definition, duplicate_name, unknown_buffer, wrong_labels, unknown_variable, missing_stride,
    missing_operand, nested_variable,
])  # fmt: skip
def test_the_verifier_finds_invalid_programs(spoil):
    program = smoothing().program
    verify_program(program, "the program")
    spoil(program)
    with pytest.raises(InvalidProgramError, match="the program: "):
        verify_program(program, "the program")


def test_the_verifier_finds_iterations_without_a_body():
    compiled = compiled_program(kalman_with_gaps, np.array([0.1, 0.5]), np.cos(np.arange(60.0)))
    loop = next(item for item in compiled.program.block.items if hasattr(item, "bodies"))
    loop.kinds[3] = len(loop.bodies)
    with pytest.raises(InvalidProgramError, match="no body"):
        verify_program(compiled.program, "the program")
