"""PTX text -> Module."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from triptych.gpu.syntax.ast import Function, Module, Variable
from triptych.gpu.syntax.body import BodyParser
from triptych.gpu.syntax.lazy_functions import LazyFunctions
from triptych.gpu.syntax.literals import parse_integer
from triptych.gpu.syntax.origins import Origins
from triptych.gpu.syntax.outline import Outline, outline_of, plain_variables
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
    return _ModuleParser(Tokens(text, name), Outline({}, ())).parse()


def parse_lazily(text: str) -> Module:
    """Parse PTX text but for the bodies of functions: each is parsed when it is first asked for, with its errors.

    Raises:
        PtxSyntaxError: what stands outside of bodies does not follow the grammar, or the text is cut short.
    """
    outline = outline_of(text)
    if outline is None or not _are_apart(text, outline.bodies):
        return parse(text)
    try:
        return _ModuleParser(Tokens(text, "<ptx>", outline.gaps(len(text))), outline).parse()
    except OverflowError:  # of a plain variable's value: this says where
        return parse(text)


def _are_apart(text: str, bodies: Mapping[int, int]) -> bool:
    """Whether bodies name no files, which are all of the module's."""
    return all(text.find(".file", start, end) < 0 for start, end in bodies.items())


class _ModuleParser:
    def __init__(self, tokens: Tokens, outline: Outline) -> None:
        """There are no tokens inside of the outline's bodies, which wait, and runs of variables."""
        self.tokens = tokens
        self.bodies = outline.bodies
        self.runs = list(reversed(outline.runs))
        self.origins = Origins(tokens)
        self.functions = LazyFunctions()
        self.variables: dict[str, Variable] = {}
        self.aliases: list[tuple[str, str, int]] = []
        self.unresolved: dict[str, int] = {}
        self.opcodes: dict[str, tuple[str, tuple[str, ...]]] = {}

    def parse(self) -> Module:
        version, target, address_size = self._parse_header()
        while self.tokens.peek():
            self._add_plain_variables(self.tokens.starts[self.tokens.at])
            self._parse_item()
        self._add_plain_variables(len(self.tokens.text))
        self._add_aliases()
        self._check_names()
        return Module(
            version=version,
            target=target,
            address_size=address_size,
            functions=self.functions if self.bodies else dict(self.functions),
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
            header = self.functions.headers.get(aliasee)
            if header is None:
                raise self.tokens.error(f"the alias '{alias}' names '{aliasee}', which is not a function", at)
            self.functions.add(replace(header, name=alias), partial(self._read_alias, alias, aliasee))

    def _read_alias(self, alias: str, aliasee: str) -> Function:
        return replace(self.functions[aliasee], name=alias)

    def _check_names(self) -> None:
        self._require_known(self.unresolved, self.tokens)
        for variable in self.variables.values():
            for _, symbol in variable.references:
                if symbol.name not in self.functions and symbol.name not in self.variables:
                    message = f"'{variable.name}' refers to the unknown '{symbol.name}'"
                    raise self.tokens.error_in(variable.line, message)

    def _require_known(self, unresolved: Mapping[str, int], tokens: Tokens) -> None:
        for name, index in unresolved.items():
            if name not in self.functions and name not in self.variables:
                raise tokens.error(f"unknown name '{name}': no variable, function, label or register has it", index)

    def _add_plain_variables(self, before: int) -> None:
        """Those of the runs before a place of the text."""
        while self.runs and self.runs[-1][0] < before:
            for variable in plain_variables(self.tokens, *self.runs.pop()):
                self._add_variable(variable)

    def _add_variable(self, variable: Variable) -> None:
        before = self.variables.get(variable.name)
        known = before is not None and "extern" not in (before.linkage, variable.linkage)
        if known or variable.name in self.functions:
            raise self.tokens.error_in(variable.line, f"'{variable.name}' is declared twice in the module")
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
        if tokens.accept(";"):
            self._add_function(function, at, None)
            return
        names = frozenset((*self.variables, *self.functions))
        start = tokens.starts[tokens.at]
        if start in self.bodies:
            tokens.at += 2
            self._add_function(replace(function, body=()), at, partial(self._read_body, function, names, start))
        else:
            self._add_function(self._parse_body(function, names, tokens, self.origins, self.unresolved), at, None)

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

    def _read_body(self, function: Function, names: frozenset[str], start: int) -> Function:
        """A function whose body waited, which begins at a place of the text."""
        tokens, unresolved = self.tokens.part(start, self.bodies[start]), dict[str, int]()
        whole = self._parse_body(function, names, tokens, self.origins.part(tokens), unresolved)
        self._require_known(unresolved, tokens)
        return whole

    def _parse_body(
        self,
        function: Function,
        names: frozenset[str],
        tokens: Tokens,
        origins: Origins,
        unresolved: dict[str, int],
    ) -> Function:
        body = BodyParser(tokens, origins, names, function.results + function.parameters, unresolved, self.opcodes)
        body.parse()
        return replace(
            function,
            registers=body.registers,
            variables=tuple(body.variables),
            body=tuple(body.statements),
        )

    def _add_function(self, function: Function, at: int, read: Callable[[], Function] | None) -> None:
        before = self.functions.headers.get(function.name)
        if function.name in self.variables or (
            before is not None and before.body is not None and function.body is not None
        ):
            raise self.tokens.error(f"'{function.name}' is declared twice in the module", at)
        if before is None or function.body is not None:
            self.functions.add(function, read)


def _skip_statement(tokens: Tokens) -> None:
    """Pass everything up to and with the next `;`."""
    while (token := tokens.peek()) != ";":
        if token in ("", "{", "}"):
            raise tokens.expected("';' after '.pragma'")
        tokens.take()
    tokens.take()
