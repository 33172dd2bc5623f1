"""The body of a function: statements, scopes, labels."""

from __future__ import annotations

from triptych.gpu.syntax.ast import (
    BranchTargets,
    CallPrototype,
    CallTargets,
    Guard,
    Instruction,
    Label,
    Operand,
    Statement,
    Symbol,
    Variable,
)
from triptych.gpu.syntax.literals import parse_integer, read_number
from triptych.gpu.syntax.names import Scopes
from triptych.gpu.syntax.operands import OperandParser
from triptych.gpu.syntax.origins import Origins
from triptych.gpu.syntax.tokens import DEEPEST, NAME_START, Tokens
from triptych.gpu.syntax.variables import SPACES, TYPE_BYTES, parse_parameters, parse_variables

MOST_REGISTERS = 1 << 20
"""The most registers that one declaration may make; compilers stay below a hundredth of it."""
TABLE_DIRECTIVES = frozenset((".branchtargets", ".callprototype", ".calltargets"))


class BodyParser:
    """Parses one function's body; afterwards `statements`, `registers` and `variables` hold it."""

    def __init__(
        self,
        tokens: Tokens,
        origins: Origins,
        module_names: frozenset[str],
        parameters: tuple[Variable, ...],
        unresolved: dict[str, int],
        opcodes: dict[str, tuple[str, tuple[str, ...]]],
    ) -> None:
        """`parameters` includes the results; `opcodes` keeps opcodes taken apart, for the whole module."""
        self.tokens = tokens
        self.origins = origins
        self.unresolved = unresolved
        self.scopes = Scopes(tokens, module_names)
        self.operands = OperandParser(tokens, self.scopes, unresolved)
        self.opcodes = opcodes
        self.statements: list[Statement] = []
        self.registers: dict[str, str] = {}
        self.variables: list[Variable] = []
        self._labels: dict[str, int] = {}
        self._targets: list[tuple[str, int]] = []
        self._line = self._ordinal = 0
        for parameter in parameters:
            self._declare_parameter(parameter)

    def _declare_parameter(self, parameter: Variable) -> None:
        if parameter.space == "reg":
            self.scopes.declare_register(parameter.name)
            self.registers[parameter.name] = parameter.type
        elif parameter.name != "_":
            self.scopes.declare_symbol(parameter.name, keep=True)

    def parse(self) -> None:
        """Pass the body, from its `{` to its `}`."""
        self.tokens.expect("{")
        labels = self._find_labels()
        self._open(labels.get(self.tokens.at - 1, ()))
        while self.scopes.depth:
            self._parse_statement(labels)
        for name, index in self._targets:
            if name not in self._labels:
                raise self.tokens.error(f"'{name}' is not a label of this function", index)

    def _find_labels(self) -> dict[int, list[int]]:
        """The places of the labels of each scope, by the place of its `{`: a branch may go forward.

        The `{` of an operand is closed before any label, so the innermost open `{` is always a scope's.
        """
        texts, first = self.tokens.texts, self.tokens.at
        labels: dict[int, list[int]] = {}
        opened = [first - 1]
        for index in range(first, len(texts)):
            token = texts[index]
            if token == "{":
                opened.append(index)
            elif token == "}":
                opened.pop()
                if not opened:
                    return labels
            elif token == ":":
                labels.setdefault(opened[-1], []).append(index - 1)
        raise self.tokens.error("the body of the function has no '}': the text is cut short", first - 1)

    def _open(self, labels: list[int] | tuple[()]) -> None:
        tokens = self.tokens
        if self.scopes.depth > DEEPEST:
            raise tokens.error(f"scopes are nested more than {DEEPEST} deep")
        self.scopes.open()
        body = tokens.at
        for index in labels:
            tokens.at = index
            name = tokens.take_name("a label")
            unique = self.scopes.declare_symbol(name)
            if tokens.texts[index + 2] not in TABLE_DIRECTIVES:
                self._labels[unique] = index
        tokens.at = body

    def _parse_statement(self, labels: dict[int, list[int]]) -> None:
        tokens = self.tokens
        token = tokens.peek()
        if token[:1] in NAME_START:
            if tokens.texts[tokens.at + 1] == ":":
                self._parse_label()
            else:
                self._parse_instruction(None)
        elif token == "@":
            self._parse_guarded()
        elif token[:1] == ".":
            self._parse_directive()
        elif token == "{":
            tokens.take()
            self._open(labels.get(tokens.at - 1, ()))
        elif token == "}":
            tokens.take()
            self.scopes.close()
        elif not tokens.accept(";"):
            raise tokens.expected("an instruction, a label or a directive")

    def _parse_label(self) -> None:
        tokens = self.tokens
        line = tokens.line()
        name = self._own_symbol(tokens.at)
        tokens.at += 2
        directive = tokens.peek()
        if directive not in TABLE_DIRECTIVES:
            self.statements.append(Label(name, line))
            return
        tokens.take()
        if directive == ".branchtargets":
            self._parse_branch_targets(name, line)
        elif directive == ".callprototype":
            self._parse_prototype(name, line)
        else:
            self._parse_call_targets(name, line)

    def _own_symbol(self, index: int) -> str:
        operand = self.scopes.names.get(self.tokens.texts[index])
        if not isinstance(operand, Symbol):
            raise self.tokens.expected("a label", index)
        return operand.name

    def _parse_branch_targets(self, name: str, line: int) -> None:
        tokens = self.tokens
        targets: list[str] = []
        while True:
            tokens.take_name("a label of '.branchtargets'")
            targets.append(self._own_symbol(tokens.at - 1))
            self._targets.append((targets[-1], tokens.at - 1))
            if not tokens.accept(","):
                break
        tokens.expect(";", "after '.branchtargets'")
        self.statements.append(BranchTargets(name, tuple(targets), line))

    def _parse_call_targets(self, name: str, line: int) -> None:
        tokens = self.tokens
        functions: list[str] = []
        while True:
            functions.append(tokens.take_name("a function of '.calltargets'"))
            self.unresolved.setdefault(functions[-1], tokens.at - 1)
            if not tokens.accept(","):
                break
        tokens.expect(";", "after '.calltargets'")
        self.statements.append(CallTargets(name, tuple(functions), line))

    def _parse_prototype(self, name: str, line: int) -> None:
        tokens = self.tokens
        results = parse_parameters(tokens) if tokens.accept("(") else ()
        tokens.take_name("'_' in place of a function's name")
        parameters = parse_parameters(tokens) if tokens.accept("(") else ()
        while tokens.peek() not in ("", ";", "{", "}"):  # directives that the call does not need
            tokens.take()
        tokens.expect(";", "after '.callprototype'")
        self.statements.append(CallPrototype(name, results, parameters, line))

    def _parse_guarded(self) -> None:
        tokens = self.tokens
        tokens.take()
        negated = tokens.accept("!")
        register = self.operands.take_register("a predicate after '@'")
        if tokens.peek()[:1] not in NAME_START:
            raise tokens.expected("an instruction after its guard")
        self._parse_instruction(Guard(register, negated))

    def _parse_instruction(self, guard: Guard | None) -> None:
        tokens = self.tokens
        texts, names, start = tokens.texts, self.scopes.names, tokens.at
        opcode = texts[start]
        parts = self.opcodes.get(opcode) or self._split_opcode(opcode)
        at = start + 1
        operands: list[Operand] = []
        while texts[at] != ";" or operands:
            token, following = texts[at], texts[at + 1]
            operand = names.get(token)
            if operand is None and token[:1].isdigit():
                operand = self._keep_number(token)
            if operand is not None and (following == "," or following == ";"):
                at += 1
            else:
                tokens.at = at
                operand = self.operands.parse(groups=parts[0] == "call")
                at = tokens.at
                following = texts[at]
            operands.append(operand)
            if following == ";":
                break
            if following != ",":
                raise tokens.expected(f"',' or ';' after an operand of '{opcode}'", at)
            at += 1
        tokens.at = at + 1
        if parts[0] == "bra":
            self._check_branch(operands, start, at)
        line, origin = tokens.line(start), self.origins.current
        self._line, self._ordinal = line, self._ordinal + 1 if line == self._line else 0
        instruction = Instruction(parts[0], parts[1], tuple(operands), guard, line, origin, ordinal=self._ordinal)
        self.statements.append(instruction)

    def _split_opcode(self, opcode: str) -> tuple[str, tuple[str, ...]]:
        mnemonic, *modifiers = opcode.split(".")
        if not mnemonic.isidentifier():
            raise self.tokens.expected("an instruction")
        parts = (mnemonic, tuple(modifiers))
        self.opcodes[opcode] = parts
        return parts

    def _keep_number(self, token: str) -> Operand | None:
        """The number that a token writes, kept among the names, where the next use finds it."""
        number = read_number(token)
        if number is not None:
            self.scopes.names[token] = number
        return number

    def _check_branch(self, operands: list[Operand], start: int, end: int) -> None:
        target = operands[-1] if len(operands) == 1 else None
        if not isinstance(target, Symbol):
            raise self.tokens.error("'bra' takes one label", start)
        self._targets.append((target.name, end - 1))

    def _parse_directive(self) -> None:
        tokens = self.tokens
        token = tokens.take()
        if token == ".loc":
            self.origins.parse_location()
        elif token == ".reg":
            self._parse_registers()
        elif token in SPACES:
            self._parse_variables(token[1:])
        elif token == ".pragma":
            while tokens.take() not in ("", ";", "}"):
                pass
            if tokens.texts[tokens.at - 1] != ";":
                raise tokens.expected("';' after '.pragma'", tokens.at - 1)
        elif token == ".file":
            self.origins.parse_file()
        else:
            raise tokens.expected("an instruction, a label or a directive of a body", tokens.at - 1)

    def _parse_variables(self, space: str) -> None:
        for variable in parse_variables(self.tokens, space, ""):
            unique = self.scopes.declare_symbol(variable.name)
            self.variables.append(_rename(variable, unique))

    def _parse_registers(self) -> None:
        tokens = self.tokens
        type_name = tokens.take()[1:]
        if type_name not in TYPE_BYTES:
            raise tokens.expected("the type of a register (vector registers are not supported)", tokens.at - 1)
        while True:
            name = tokens.take_name("a register's name")
            if tokens.accept("<"):
                self._declare_range(name, type_name)
            else:
                self.registers[self.scopes.declare_register(name)] = type_name
            if not tokens.accept(","):
                break
        tokens.expect(";", "after '.reg'")

    def _declare_range(self, name: str, type_name: str) -> None:
        tokens = self.tokens
        count = parse_integer(tokens, "a number of registers")
        if not 0 <= count <= MOST_REGISTERS:
            raise tokens.error(f"{count} registers in one declaration; expected 0 to {MOST_REGISTERS}", tokens.at - 1)
        tokens.expect(">", "after a number of registers")
        for number in range(count):
            self.registers[self.scopes.declare_register(f"{name}{number}")] = type_name


def _rename(variable: Variable, name: str) -> Variable:
    if name == variable.name:
        return variable
    return Variable(
        name=name,
        space=variable.space,
        type=variable.type,
        align=variable.align,
        count=variable.count,
        initial=variable.initial,
        references=variable.references,
        line=variable.line,
    )
