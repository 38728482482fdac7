"""The values that a module's source writes for a name.

They are those of assignments, of loops over a table, of the columns of `parametrize`, and of
arguments in calls of the module's own functions.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

Function = ast.FunctionDef | ast.AsyncFunctionDef
# Calls whose arguments are parts of a value; those of other calls are inputs of the tested code.
BUILDERS = {"param", "escape", "dict", "sorted"}


class NameValues:
    """Values of a module's names, each in a function of the module or in the module itself ("")."""

    def __init__(self, tree: ast.Module) -> None:
        self.nodes = list(_walk(tree, ""))
        self._values: dict[tuple[str, str], list[tuple[str, ast.expr]]] = {}
        functions = {it.name: it for _, it in self.nodes if isinstance(it, Function)}
        loops = []
        for scope, node in self.nodes:
            if isinstance(node, ast.Assign):
                self._bind(scope, node.targets[0], scope, node.value)
            elif isinstance(node, ast.For | ast.comprehension):
                loops.append((scope, node.target, node.iter))
            elif isinstance(node, Function):
                loops += [(node.name, _target(it), it.args[1]) for it in _tables(node)]
            elif isinstance(node, ast.Call) and called(node) in functions:
                self._bind_arguments(functions[called(node)], scope, node)
        # Tables may be values of names that other loops bind.
        for scope, target, table in 2 * loops:
            for origin, row in [*self._rows(scope, table)]:
                self._bind(scope, target, origin, row)

    def parts(self, scope: str, node: ast.expr) -> Iterator[ast.expr]:
        """Yield an expression, and the values of the names that it contains."""
        left = [(scope, node)]
        found: set[ast.expr] = set()
        while left:
            scope, node = left.pop()
            if node not in found:
                found.add(node)
                yield node
                for name in _names(node):
                    left += self._of(scope, name)

    def _of(self, scope: str, name: str) -> list[tuple[str, ast.expr]]:
        return self._values.get((scope, name)) or self._values.get(("", name), [])

    def _bind(self, scope: str, target: ast.expr, origin: str, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self._values.setdefault((scope, target.id), []).append((origin, value))
        elif isinstance(target, ast.Tuple | ast.List):
            for name, part in zip(target.elts, _elements(value), strict=False):
                self._bind(scope, name, origin, part)

    def _bind_arguments(self, function: Function, scope: str, call: ast.Call) -> None:
        names = [it.arg for it in function.args.args if it.arg != "self"]
        given = [*zip(names, call.args, strict=False)]
        given += [(it.arg, it.value) for it in call.keywords if it.arg]
        for name, value in given:
            self._bind(function.name, ast.Name(name), scope, value)

    def _rows(
        self, scope: str, table: ast.expr, outer: tuple[ast.expr, ...] = ()
    ) -> Iterator[tuple[str, ast.expr]]:
        """Yield the elements of a table, with the functions whose names they use."""
        if isinstance(table, ast.Call):
            yield from self._rows_of_call(scope, table, outer)
        inner = self._of(scope, table.id) if isinstance(table, ast.Name) else []
        for row in _elements(table):
            if isinstance(row, ast.Starred):
                inner = [*inner, (scope, row.value)]
            else:
                yield scope, row
        for origin, value in inner:
            if value not in outer:
                yield from self._rows(origin, value, (*outer, value))

    def _rows_of_call(
        self, scope: str, call: ast.Call, outer: tuple[ast.expr, ...]
    ) -> Iterator[tuple[str, ast.expr]]:
        name = called(call)
        if name == "items" and isinstance(call.func, ast.Attribute):
            yield from self._rows(scope, call.func.value, outer)
        elif name in {"zip", "enumerate"}:
            # Each row has the element of one table.
            for place, table in enumerate(call.args, start=name == "enumerate"):
                before = [ast.Constant(None)] * place
                for origin, row in self._rows(scope, table, outer):
                    yield origin, ast.Tuple([*before, row])


def called(call: ast.Call) -> str:
    """Return the name of the function or method that is called."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else ast.unparse(call.func)


def children(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of an expression that belong to its value."""
    if not isinstance(node, ast.Call):
        yield from ast.iter_child_nodes(node)
    elif called(node) == "format":
        yield node.func
    elif called(node) in BUILDERS or called(node)[:1].isupper():
        yield from [*node.args, *node.keywords]


def _walk(node: ast.AST, scope: str) -> Iterator[tuple[str, ast.AST]]:
    yield scope, node
    inner = node.name if isinstance(node, Function) else scope
    for child in ast.iter_child_nodes(node):
        yield from _walk(child, inner)


def _names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name):
        yield node.id
    elif not isinstance(node, ast.Attribute) or node.attr == "format":
        for child in children(node):
            yield from _names(child)


def _elements(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.Call) and called(node) == "param":
        return node.args
    if isinstance(node, ast.Dict):
        items = zip(node.keys, node.values, strict=True)
        return [ast.Tuple([key or value, value]) for key, value in items]
    if isinstance(node, ast.GeneratorExp | ast.ListComp):
        return [node.elt]
    return node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else []


def _tables(function: Function) -> Iterator[ast.Call]:
    for it in function.decorator_list:
        if isinstance(it, ast.Call) and called(it) == "parametrize":
            yield it


def _target(table: ast.Call) -> ast.expr:
    """Return the names of `parametrize` as the target of an assignment."""
    names = table.args[0]
    found = [it.value for it in _elements(names) or [names] if isinstance(it, ast.Constant)]
    target = [ast.Name(str(it)) for it in found]
    return target[0] if isinstance(names, ast.Constant) else ast.Tuple([*target])
