"""PTX text -> Module."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from triptych.gpu.syntax.ast import Function, Module, Variable
from triptych.gpu.syntax.body import BodyParser
from triptych.gpu.syntax.literals import parse_integer
from triptych.gpu.syntax.origins import Origins
from triptych.gpu.syntax.tokens import Tokens
from triptych.gpu.syntax.variables import parse_parameters, parse_variables

LINKAGES = frozenset((".visible", ".extern", ".weak", ".common"))
MODULE_SPACES = frozenset((".global", ".const", ".shared", ".tex"))
NUMBERED = frozenset(
    f".{name}"
    for name in (
        *("reqntid", "maxntid", "minnctapersm", "maxnctapersm", "maxnreg"),
        *("reqnctapercluster", "maxclusterrank", "blocksareclusters", "explicitcluster"),
        *("noreturn", "abi_preserve", "abi_preserve_control"),
    )
)
"""Directives between a function's header and its body, with the numbers that follow them."""


def parse(text: str, *, name: str = "<ptx>") -> Module:
    """Parse PTX text; `name` is the file's name in errors.

    Raises:
        PtxSyntaxError: the text does not follow the grammar, is cut short, or uses a name that is not declared.
    """
    return _ModuleParser(Tokens(text, name)).parse()


class _ModuleParser:
    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.origins = Origins(tokens)
        self.functions: dict[str, Function] = {}
        self.variables: dict[str, Variable] = {}
        self.aliases: list[tuple[str, str, int]] = []
        self.unresolved: dict[str, int] = {}
        self.opcodes: dict[str, tuple[str, tuple[str, ...]]] = {}

    def parse(self) -> Module:
        version, target, address_size = self._parse_header()
        while self.tokens.peek():
            self._parse_item()
        self._add_aliases()
        self._check_names()
        return Module(
            version=version,
            target=target,
            address_size=address_size,
            functions=self.functions,
            variables=self.variables,
            files=self.origins.files,
        )

    def _parse_header(self) -> tuple[tuple[int, int], str, int]:
        tokens = self.tokens
        tokens.expect(".version", "at the start of the module")
        number = tokens.peek()
        major, dot, minor = number.partition(".")
        if not (dot and major.isdecimal() and minor.isdecimal() and len(number) < 10):
            raise tokens.expected("a version such as 8.4")
        tokens.take()
        tokens.expect(".target", "after '.version'")
        target = tokens.take_name("a target such as sm_80")
        while tokens.accept(","):
            tokens.take_name("an option of the target")
        address_size = 32  # the manual's default
        if tokens.accept(".address_size"):
            address_size = parse_integer(tokens, "an address size")
            if address_size == 32:
                message = "addresses of 32 bits are not supported: `ptxas` compiles them for no target from sm_75 on"
                raise tokens.error(message, tokens.at - 1, "compile for addresses of 64 bits")
            if address_size != 64:
                raise tokens.error(f"an address size of {address_size}; expected 64", tokens.at - 1)
        return (int(major), int(minor)), target, address_size

    def _parse_item(self) -> None:
        tokens = self.tokens
        linkage = ""
        while tokens.peek() in LINKAGES:
            linkage = tokens.take()[1:]
        token = tokens.peek()
        if token in MODULE_SPACES:
            tokens.take()
            for variable in parse_variables(tokens, token[1:] if token != ".tex" else "global", linkage):
                self._add_variable(variable)
        elif token in (".entry", ".func"):
            tokens.take()
            self._parse_function(linkage, is_entry=token == ".entry")
        elif linkage:
            raise tokens.expected(f"a variable or a function after '.{linkage}'")
        else:
            self._parse_other(token)

    def _parse_other(self, token: str) -> None:
        tokens = self.tokens
        if token.startswith(".section") and token.endswith("}"):
            tokens.take()
            return
        if token == ".section":
            raise tokens.error("the section has no '}': the text is cut short")
        tokens.take()
        match token:
            case ".file":
                self.origins.parse_file()
            case ".loc":
                self.origins.parse_location()
            case ".pragma":
                _skip_statement(tokens)
            case ".alias":
                self._parse_alias()
            case ";":
                pass
            case _:
                raise tokens.expected("a function, a variable or a directive of a module", tokens.at - 1)

    def _parse_alias(self) -> None:
        tokens = self.tokens
        at = tokens.at
        alias = tokens.take_name("the name of an alias")
        tokens.expect(",", "after the name of an alias")
        aliasee = tokens.take_name("a function's name")
        tokens.expect(";", "after '.alias'")
        self.aliases.append((alias, aliasee, at))

    def _add_aliases(self) -> None:
        for alias, aliasee, at in self.aliases:
            function = self.functions.get(aliasee)
            if function is None:
                raise self.tokens.error(f"the alias '{alias}' names '{aliasee}', which is not a function", at)
            self.functions[alias] = replace(function, name=alias)

    def _check_names(self) -> None:
        for name, index in self.unresolved.items():
            if name not in self.functions and name not in self.variables:
                raise self.tokens.error(
                    f"unknown name '{name}': no variable, function, label or register has it", index
                )
        for variable in self.variables.values():
            for _, symbol in variable.references:
                if symbol.name not in self.functions and symbol.name not in self.variables:
                    raise self._at_line(f"'{variable.name}' refers to the unknown '{symbol.name}'", variable.line)

    def _at_line(self, message: str, line: int) -> Exception:
        tokens = self.tokens
        index = 0
        while index < len(tokens.texts) - 1 and tokens.line(index) < line:
            index += 1
        return tokens.error(message, index)

    def _add_variable(self, variable: Variable) -> None:
        before = self.variables.get(variable.name)
        known = before is not None and "extern" not in (before.linkage, variable.linkage)
        if known or variable.name in self.functions:
            raise self.tokens.error(f"'{variable.name}' is declared twice in the module", self.tokens.at - 1)
        if before is None or variable.linkage != "extern":
            self.variables[variable.name] = variable

    def _parse_function(self, linkage: str, *, is_entry: bool) -> None:
        tokens = self.tokens
        self.origins.start_function()
        if tokens.accept(".attribute"):
            tokens.expect("(", "after '.attribute'")
            while tokens.take() not in ("", ")"):
                pass
        results = parse_parameters(tokens) if not is_entry and tokens.accept("(") else ()
        line, at = tokens.line(), tokens.at
        name = tokens.take_name("the name of a function")
        parameters = parse_parameters(tokens) if tokens.accept("(") else ()
        directives = self._parse_directives()
        function = Function(
            name=name,
            is_entry=is_entry,
            linkage=linkage,
            results=results,
            parameters=parameters,
            registers={},
            variables=(),
            body=None,
            directives=directives,
            line=line,
        )
        if not tokens.accept(";"):
            function = self._parse_body(function)
        self._add_function(function, at)

    def _parse_directives(self) -> Mapping[str, tuple[int, ...]]:
        tokens = self.tokens
        directives: dict[str, tuple[int, ...]] = {}
        while (token := tokens.peek()).startswith("."):
            tokens.take()
            if token == ".pragma":
                _skip_statement(tokens)
            elif token in NUMBERED:
                directives[token[1:]] = self._parse_numbers()
            else:
                raise tokens.expected("a directive such as '.reqntid', or the body", tokens.at - 1)
        return directives

    def _parse_numbers(self) -> tuple[int, ...]:
        tokens = self.tokens
        if not tokens.peek()[:1].isdigit():
            return ()
        numbers = [parse_integer(tokens, "a number")]
        while tokens.accept(","):
            numbers.append(parse_integer(tokens, "a number"))
        return tuple(numbers)

    def _parse_body(self, function: Function) -> Function:
        body = BodyParser(
            self.tokens,
            self.origins,
            frozenset((*self.variables, *self.functions)),
            function.results + function.parameters,
            self.unresolved,
            self.opcodes,
        )
        body.parse()
        return replace(
            function,
            registers=body.registers,
            variables=tuple(body.variables),
            body=tuple(body.statements),
        )

    def _add_function(self, function: Function, at: int) -> None:
        before = self.functions.get(function.name)
        if function.name in self.variables or (
            before is not None and before.body is not None and function.body is not None
        ):
            raise self.tokens.error(f"'{function.name}' is declared twice in the module", at)
        if before is None or function.body is not None:
            self.functions[function.name] = function


def _skip_statement(tokens: Tokens) -> None:
    """Pass everything up to and with the next `;`."""
    while (token := tokens.peek()) != ";":
        if token in ("", "{", "}"):
            raise tokens.expected("';' after '.pragma'")
        tokens.take()
    tokens.take()
