"""Generation of the function of an operator and its in-place variant."""

from __future__ import annotations

import numpy as np

from ...views.inplace import BEGIN, Steps, write_source
from ..language.spec import Argument, Formula, Operator
from .dtype_checks import guarded_forward, kind_check
from .node_writer import backward_name, edge_slots, grads_are_several, keeps_precision, needs_input_specs
from .scalars import scalar_path

CHOOSING = ("condition", "mask")  # arguments that select among the others and are not combined with them


class FunctionWriter:
    """Generates the function of an operator and its in-place variant.

    Arguments:
        operator: its declaration.
        plain: whether the function ignores every mode except grad mode.
    """

    def __init__(self, operator: Operator, *, plain: bool = False) -> None:
        self.operator = operator
        self.plain = plain
        self.signature = operator.signature
        self.tensors = operator.signature.tensors
        self.listed = next((argument for argument in self.tensors if argument.kind == "tensors"), None)
        self.number = {argument.name: i for i, argument in enumerate(self.tensors)}
        self.formulas = operator.formulas
        self.inplace_result = False
        self.is_ufunc = isinstance(operator.forward, np.ufunc)

    def function(self) -> str:
        """Return the source of the function."""
        operator = self.operator
        name = operator.name
        lines = self.signature.definition()
        if not self.plain:
            lines += scalar_path(operator)
        lines += self._convert(self.tensors)
        lines += self._refuse_tensors()
        lines += self._special("run_special")
        lines += self._arrays()
        outputs = self.signature.outputs
        lines += kind_check(operator)
        call = f"{name}_forward({self.signature.call(self._array_name)})"
        lines += guarded_forward(operator, f"{', '.join(f'r{i}' for i in range(len(outputs)))} = {call}")
        for i in range(len(outputs)):
            if not self.is_ufunc:  # a ufunc returns numbers for 0-d results, and new arrays otherwise
                others = [self._array_name(argument.name) for argument in self.tensors]
                test = f"type(r{i}) is not ndarray or r{i}.base is not None"
                if not operator.returns_0d_arrays:
                    test += f" or not r{i}.ndim"
                if operator.user_defined:  # it may return one of its inputs, or the same array twice
                    others += [f"r{j}" for j in range(i)]
                    test += "".join(f" or r{i} is {other}" for other in others)
                if not operator.returns_0d_arrays and not operator.user_defined:
                    test = f"type(r{i}) is not float64 and ({test})"
                arrays = ", True" if operator.returns_0d_arrays else ""
                lines += [f"    if {test}:", f"        r{i} = owned_array(r{i}, ({', '.join(others)},){arrays})"]
            lines += [
                f"    out{i} = new(Tensor)",
                f"    out{i}._array = r{i}",
                f"    out{i}._view = None",
                f"    out{i}._storage = None",
                f"    out{i}._saved = None",
            ]
        if operator.formulas:
            lines += self._record()
        else:
            lines += [f"    out{i}._edge = None" for i in range(len(outputs))]
        lines.append(f"    return {', '.join(f'out{i}' for i in range(len(outputs)))}")
        return "\n".join(lines) + "\n"

    def inplace(self, *, augmented: bool = False) -> str:
        """Return the source of the in-place variant; with `augmented`, of `x += y`, which rebinds scalars.

        The node saves inputs before the write, which preserves them, and the result after the write.
        """
        operator = self.operator
        declared = operator.inplace_declaration or operator
        self.formulas = declared.formulas
        self.inplace_result = True
        name = operator.name
        class_name = backward_name(name if declared.formulas is operator.formulas else f"{name}_in_place")
        target = self.tensors[0].name
        lines = self.signature.definition(f"{name}_")
        if augmented:
            lines += [f"    if type({target}._array) is not ndarray:", "        return NotImplemented"]
        if len(self.tensors) > 1:
            lines += self._convert(self.tensors)
        lines += self._refuse_tensors()
        lines += self._special("run_special_inplace")
        lines += self._arrays()
        lines += kind_check(operator, always=True)
        numbers = sorted({0, *self._differentiable()})  # the history of a target ends if its old value is irrelevant
        lines += self._edges(numbers)
        some = " or ".join(f"e{i} is not None" for i in numbers)
        check = [
            f"recorded = mode_bits and ({some}) and a0.dtype.kind in 'fc'",
            f"if recorded or {target}._view is not None or a0.base is not None:",
            f"    detached = check_write({target}, recorded)",
            "else:",
            f"    storage = {target}._storage",
            f"    detached = storage is not None and storage.cuts is not None and check_write({target}, False)",
        ]
        computed, write, real = self._written_value(declared)
        if declared.formulas:
            node = [f"node = {class_name}InPlace()", *self._fill_edges("")]
            save_inputs = [*self._save_inputs(""), *self._save_input_specs("", inplace=True)]
        else:
            node = ["node = new(CopyBackwards)", "node.edge0 = node.edge1 = None", "node.like = None"]
            save_inputs = []
        save_results = [f"node.wrote_real = {real}"] if real and declared.formulas else []
        for result in sorted({result for formula in self.formulas for result in formula.results}):
            readers = [formula for formula in self.formulas if result in formula.results]
            save_results += self._when_needed("", readers, [f"node.saved_{result} = {self._save(target)}"])
        steps = Steps(
            target=target,
            writer=repr(f"{name}_"),
            check="\n".join(check + computed),
            node="\n".join(node),
            begin=BEGIN.format(target=target, own="e0"),
            prepare=f"prepare_write({target}, {name + '_'!r})",
            write=write,
            save_inputs="\n".join(save_inputs),
            save_results="\n".join(save_results),
            note=f"constant_written({target})",
            result=target,
        )
        return write_source("\n".join(lines) + "\n", steps)

    # -- the parts -----------------------------------------------------------------------------------------------------

    def _written_value(self, declared: Operator) -> tuple[list[str], str, str]:
        """Return the lines that compute the value, the write, and whether it writes real to complex numbers."""
        operator = self.operator
        forward = f"{operator.name}_forward" if declared is operator else f"{operator.name}_inplace_forward"
        call = f"{forward}({self.signature.call(self._array_name)}"
        if not isinstance(declared.forward, np.ufunc):
            return [f"r0 = {call})", "real = writes_reals(a0, r0)"], "copyto(a0, r0, 'same_kind')", "real"
        # Passing `out` by position is faster, but NumPy requires the name for these two.
        name_of_out = "out=" if declared.forward in (np.maximum, np.minimum) else ""
        return [], f"{call}, {name_of_out}a0)", "a0.dtype.kind == 'c'" if may_write_reals(declared) else ""

    def _convert(self, arguments: tuple[Argument, ...]) -> list[str]:
        names = [argument.name for argument in arguments if not argument.optional]
        lines = []
        if self.listed is not None:
            lines.append(f"    {self.listed.name} = [as_operand(tensor) for tensor in {self.listed.name}]")
        elif self.operator.elementwise and len(arguments) > 1:
            ours = not self.operator.user_defined
            choosing = [argument.name for argument in arguments if ours and argument.name in CHOOSING]
            combined = [argument for argument in arguments if argument.name not in choosing]
            tests = [
                f"({name} is not None and type({name}) is not Tensor)" if optional else f"type({name}) is not Tensor"
                for name, optional in ((argument.name, argument.optional) for argument in combined)
            ]
            together = ", ".join(argument.name for argument in combined)
            if ours and self.operator.name == "clip":
                convert = "clip_operands"
            elif any(argument.optional for argument in combined):
                convert = "optional_operands"
            else:
                convert = "operand_pair" if len(combined) == 2 else "operands"
            lines = [f"    if {' or '.join(tests)}:", f"        {together} = {convert}({together})"]
            for name in choosing:
                lines += [f"    if type({name}) is not Tensor:", f"        {name} = as_operand({name})"]
            if len(names) != len(arguments) or len(names) != 2:
                return lines
            large = self._taking_large_numbers(together if not choosing else "")
            return self._with_not_implemented(lines, names) + large
        else:
            is_of_ufunc = not self.operator.user_defined and isinstance(getattr(np, self.operator.name, None), np.ufunc)
            option = ", True" if is_of_ufunc else ""
            for name in names:
                lines += [f"    if type({name}) is not Tensor:", f"        {name} = as_operand({name}{option})"]
            if len(names) == len(arguments) == 2:
                lines = self._with_not_implemented(lines, names)
        for argument in arguments:
            if argument.optional:
                name = argument.name
                lines += [
                    f"    if {name} is not None and type({name}) is not Tensor:",
                    f"        {name} = as_operand({name})",
                ]
        return lines

    @staticmethod
    def _with_not_implemented(lines: list[str], names: list[str]) -> list[str]:
        """Return the conversion of two operands, which yields NotImplemented if Python's operators cannot convert them.
        """
        converted = [f"    {line}" for line in lines]
        failed = f"        return foreign_operand({', '.join(names)})"
        return ["    try:", *converted, "    except UnsupportedTypeError:", failed]

    def _taking_large_numbers(self, operands: str) -> list[str]:
        """Return the conversion of an integer too large for the other operand's dtype, for ufuncs that allow it."""
        ufunc = self.operator.forward if self.is_ufunc else getattr(np, self.operator.name, None)
        if not operands or self.operator.user_defined or not isinstance(ufunc, np.ufunc):
            return []
        return ["    except OverflowError:", f"        {operands} = wide_operands({ufunc.__name__!r}, {operands})"]

    def _refuse_tensors(self) -> list[str]:
        """Return a check that no plain argument is a tensor."""
        lines = []
        for argument in self.signature.plain:
            name = argument.name
            if self.operator.user_defined:
                lines += [
                    f"    if type({name}) in HOLDERS:",
                    f"        refuse_tensors({self.operator.name!r}, {name!r}, {name})",
                ]
            else:  # integers are accepted, as in NumPy
                lines += [
                    f"    if type({name}) is Tensor:",
                    f"        {name} = plain_option({self.operator.name!r}, {name!r}, {name})",
                ]
        return lines

    def _special(self, run: str) -> list[str]:
        if self.plain:
            return ["    mode_bits = current_mode() & GRAD"]
        name = self.operator.name
        positional = ", ".join(a.name for a in self.signature.arguments if not a.keyword_only)
        keywords = ", ".join(f"{a.name!r}: {a.name}" for a in self.signature.arguments if a.keyword_only)
        return [
            "    mode_bits = current_mode()",
            "    if mode_bits > GRAD:",
            f"        return {run}({name}_operator, ({positional},), {{{keywords}}}, mode_bits)",
        ]

    def _arrays(self) -> list[str]:
        if self.listed is not None:
            return [f"    a0 = [forward_array(tensor) for tensor in {self.listed.name}]"]
        lines = []
        for i, argument in enumerate(self.tensors):
            value = f"{argument.name}._array" if self.is_ufunc else f"forward_array({argument.name})"
            if argument.optional:
                lines.append(f"    a{i} = None if {argument.name} is None else {value}")
            else:
                lines.append(f"    a{i} = {argument.name}._array")
                if not self.is_ufunc:  # a ufunc accepts only arrays here
                    lines += [f"    if type(a{i}) is not ndarray:", f"        a{i} = asarray(a{i})"]
        return lines

    def _array_name(self, name: str) -> str:
        return f"a{self.number[name]}" if name in self.number else name

    def _differentiable(self) -> list[int]:
        return sorted({self.number[name] for formula in self.formulas for name in formula.inputs})

    def _edges(self, numbers: list[int]) -> list[str]:
        if self.listed is not None:
            return [
                "    edges = tuple([tensor._edge if tensor._view is None else tensor._view.edge_of(tensor)",
                f"                   for tensor in {self.listed.name}])",
            ]
        lines = []
        for i in numbers:
            argument = self.tensors[i]
            name = argument.name
            if argument.optional:
                lines += [
                    f"    e{i} = None if {name} is None else {name}._edge if {name}._view is None "
                    f"else {name}._view.edge_of({name})"
                ]
            else:
                lines.append(f"    e{i} = {name}._edge if {name}._view is None else {name}._view.edge_of({name})")
        return lines

    def _fill_node(self, indent: str) -> list[str]:
        return [
            *self._fill_edges(indent),
            f"{indent}node.hooks = None",
            f"{indent}node.sequence_nr = next_sequence_nr()",
        ]

    def _fill_edges(self, indent: str) -> list[str]:
        differentiable = set(self._differentiable())
        edges = [f"e{i}" if i in differentiable else "None" for i in range(len(self.tensors))]
        slots = edge_slots(self.operator)
        if slots == ["edges"]:
            edges = ["edges"] if self.listed is not None else [f"({', '.join(edges)},)"]
        return [f"{indent}node.{slot} = {edge}" for slot, edge in zip(slots, edges, strict=True)]

    def _save_inputs(self, indent: str) -> list[str]:
        lines: list[str] = []
        for name in dict.fromkeys(read for formula in self.formulas for read in formula.reads):
            argument = self.signature.argument(name)
            body = [
                f"node.saved_{name} = {name}._saved",
                f"if node.saved_{name} is None:",
                f"    node.saved_{name} = {self._save(name)}",
            ]
            if argument.kind == "tensors":
                body = [f"node.saved_{name} = [save(tensor) for tensor in {name}]"]
            elif argument.optional:
                body = [f"node.saved_{name} = None if {name} is None else save({name})"]
            lines += self._when_needed(indent, [f for f in self.formulas if name in f.reads], body)
        for slot, name, attribute in dict.fromkeys(entry for formula in self.formulas for entry in formula.metadata):
            readers = [formula for formula in self.formulas if (slot, name, attribute) in formula.metadata]
            body = [f"node.saved_{slot} = {self._metadata(name, attribute)}"]
            lines += self._when_needed(indent, readers, body)
        for name in dict.fromkeys(read for formula in self.formulas for read in formula.plain):
            body = [f"node.saved_{name} = frozen_copy({name}) if type({name}) in MUTABLE else {name}"]
            lines += self._when_needed(indent, [f for f in self.formulas if name in f.plain], body)
        return lines

    def _save(self, name: str) -> str:
        # In special modes saved values are inspected, with their windows.
        if self.plain:
            return f"save({name})"
        return f"save({name}) if {self._array_name(name)}.ndim else save_scalar({name})"

    def _metadata(self, name: str, attribute: str) -> str:
        """Return the expression for the metadata of a tensor whose value need not be saved."""
        if name not in self.number:
            return f"{'a0' if self.inplace_result else f'r{self.signature.outputs.index(name)}'}.{attribute}"
        if self.listed is not None:
            return f"[array.{attribute[:-1]} for array in a0]"
        value = f"geometry_of({name})" if attribute == "geometry" else f"{self._array_name(name)}.{attribute}"
        return f"None if {name} is None else {value}" if self.signature.argument(name).optional else value

    def _when_needed(self, indent: str, formulas: list[Formula], body: list[str]) -> list[str]:
        numbers = sorted({self.number[name] for formula in formulas for name in formula.inputs})
        others = set(self._differentiable())
        if self.inplace_result:
            others.add(0)  # it may be the only input that needs the value
        if self.listed is not None or others <= set(numbers):
            return [indent + line for line in body]
        test = " or ".join(f"e{i} is not None" for i in numbers)
        return [f"{indent}if {test}:", *(f"{indent}    {line}" for line in body)]

    def _save_input_specs(self, indent: str, *, inplace: bool = False) -> list[str]:
        if not needs_input_specs(self.operator):
            return []
        if self.listed is not None:
            return [f"{indent}node.input_specs = [(array.shape, array.dtype) for array in a0]"]
        arrays = [f"a{i}" for i in range(len(self.tensors))]
        result = "a0" if inplace else "r0"
        differentiable = set(self._differentiable())
        elementwise = self.operator.elementwise and not self.operator.user_defined
        tests = []
        keeps = keeps_precision(self.operator)
        if len(arrays) == 2 and not inplace and differentiable == {0, 1} and elementwise and keeps:
            same = "a0.shape == a1.shape and a0.dtype is a1.dtype"
            return [
                f"{indent}if {same} if e0 is not None and e1 is not None else "
                f"r0.shape == (a0 if e1 is None else a1).shape and a0.dtype is a1.dtype:",
                f"{indent}    node.input_specs = None",
                f"{indent}else:",
                f"{indent}    node.input_specs = ((a0.shape, a0.dtype), (a1.shape, a1.dtype))",
            ]
        for i, array in enumerate(arrays):
            if i in differentiable and not (inplace and i == 0):
                some = f"{array} is None or " if self.tensors[i].optional else ""
                tests.append(f"({some}{result}.shape == {array}.shape and {result}.dtype is {array}.dtype)")
        input_specs = ", ".join(
            f"None if {array} is None else ({array}.shape, {array}.dtype)"
            if self.tensors[i].optional
            else f"({array}.shape, {array}.dtype)"
            for i, array in enumerate(arrays)
        )
        if not elementwise or not keeps:
            return [f"{indent}node.input_specs = ({input_specs},)"]
        if not tests:
            return [f"{indent}node.input_specs = None"]
        return [
            f"{indent}if {' and '.join(tests)}:",
            f"{indent}    node.input_specs = None",
            f"{indent}else:",
            f"{indent}    node.input_specs = ({input_specs},)",
        ]

    def _record(self) -> list[str]:
        operator = self.operator
        outputs = self.signature.outputs
        differentiable = self._differentiable()
        some = " or ".join(f"e{i} is not None" for i in differentiable)
        if self.listed is not None:
            some = "edges.count(None) != len(edges)"
        several = grads_are_several(operator)
        # An operator that casts, or an unknown operator, may return integers, which have no gradient.
        casts = operator.user_defined or any(argument.name == "dtype" for argument in self.signature.plain)
        first = next(i for i, output in enumerate(outputs) if output not in operator.nondifferentiable_outputs)
        floating = f" and r{first}.dtype.kind in 'fc'" if casts and not several else ""
        lines = self._edges(differentiable)
        lines += [
            f"    if mode_bits and ({some}){floating}:",
            f"        node = {backward_name(operator.name)}()",
            *self._fill_node("        "),
            *self._save_inputs("        "),
            *self._save_input_specs("        "),
        ]
        lines += self._save_results()
        if several:
            input_specs = ", ".join(f"(r{i}.shape, r{i}.dtype)" for i in range(len(outputs)))
            lines.append(f"        node.output_specs = ({input_specs},)")
        for i, output in enumerate(outputs):
            edge = "None" if output in operator.nondifferentiable_outputs else f"Edge(node, {i})" if several else "node"
            if casts and several and edge != "None":
                edge = f"{edge} if r{i}.dtype.kind in 'fc' else None"
            lines.append(f"        out{i}._edge = {edge}")
        lines.append("    else:")
        lines += [f"        out{i}._edge = None" for i in range(len(outputs))]
        return lines

    def _save_results(self) -> list[str]:
        lines = []
        for i, output in enumerate(self.signature.outputs):
            readers = [formula for formula in self.formulas if output in formula.results]
            if readers:
                body = [
                    "saved = new(SavedTensor)",
                    f"saved.array = r{i}",
                    f"node.saved_{output} = out{i}._saved = saved",
                ]
                if self.is_ufunc and not self.plain:
                    number = [f"if type(r{i}) is float64:", f"    node.saved_{output} = r{i}", "else:"]
                    body = [*number, *(f"    {line}" for line in body)]
                lines += self._when_needed("        ", readers, body)
        return lines


def may_write_reals(operator: Operator) -> bool:
    """Return whether the in-place variant may write real over complex numbers, as some ufuncs do."""
    ufunc = operator.forward
    if not isinstance(ufunc, np.ufunc):
        return True
    return any("D" in loop[: ufunc.nin] and loop[-1] not in "FDGO" for loop in ufunc.types)
