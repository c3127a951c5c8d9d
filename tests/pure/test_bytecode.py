"""The same program has the same call sites under every Python. Runs without torch; `.ci/interpreters.py` runs it under each."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from pure.loading import load

bytecode = load("calls/bytecode.py")
seen: list[Any] = []


def _note(*unused: Any, **named: Any) -> Any:
    seen.append(bytecode.site(sys._getframe(1)))
    return a


class Probe:
    """Notes the call site of each of its methods."""

    method = _note


for _word in (
    "add", "radd", "iadd", "sub", "rsub", "mul", "rmul", "imul", "truediv", "itruediv", "floordiv", "mod", "matmul", "pow",
    "rpow", "ipow", "and", "or", "xor", "neg", "pos", "abs", "invert", "eq", "lt", "ge", "getitem",
):  # fmt: skip
    setattr(Probe, f"__{_word}__", _note)

a = Probe()
b = Probe()
holder = SimpleNamespace(inner=SimpleNamespace(p=a, call=_note))
f = _note
given = (1, 2)
options = {"dim": 2}


def inplace(value: Any) -> None:
    value += b


def power(value: Any) -> None:
    value **= 2


def after_subscript(values: Any) -> None:
    values[0] /= values[1]


def local_sides(one: Any, two: Any) -> None:
    one * two


def nested_function(outer: Any) -> Callable[[], Any]:
    return lambda: outer + 1.5


def keywords_of_method(one: Any, wide: Any) -> None:
    one.method(wide, dim=1, keepdim=True)


def in_loop(values: Any) -> None:
    for value in values:
        holder.inner.call(value, scale=2 * 3)


def in_comprehension(values: Any) -> Any:
    return [f(value, 1) for value in values]


def branch_inside(flag: bool) -> None:
    f(1 if flag else 2, a)


def many_constants() -> None:
    """More than 256 constants and names, so that arguments of instructions take several bytes."""
    exec(
        compile("\n".join(f"x{i} = {i}.5" for i in range(400)) + "\na + 7.25\nf(x399, key=x1)", "many", "exec"),
        {**globals()},
    )


def _operator(left: Any = (), right: Any = ()) -> tuple[Any, ...]:
    return ("operator", left, right)


def _call(count: int, keywords: Any = (), target: Any = (), attribute: bool = False) -> tuple[Any, ...]:
    return ("call", count, tuple(keywords), target, attribute)


CONSTANT = "constant"
CASES: dict[str, tuple[Callable[[], Any], list[tuple[Any, ...]]]] = {
    "names": (lambda: a + b, [_operator(("a",), ("b",))]),
    "constant right": (lambda: a + 1.5, [_operator(("a",), CONSTANT)]),
    "constant left": (lambda: 2 * a, [_operator(CONSTANT, ("a",))]),
    "small whole number": (lambda: a**2, [_operator(("a",), CONSTANT)]),
    "attributes": (lambda: holder.inner.p - b, [_operator(("holder", "inner", "p"), ("b",))]),
    "locals": (lambda: local_sides(a, b), [_operator(("one",), ("two",))]),
    "free variable": (nested_function(a), [_operator(("outer",), CONSTANT)]),
    "chain": (lambda: a * b + 1, [_operator(("a",), ("b",)), _operator((), CONSTANT)]),
    "in place": (lambda: inplace(a), [_operator(("value",), ("b",))]),
    "in place power": (lambda: power(a), [_operator(("value",), CONSTANT)]),
    "in place after a subscript": (lambda: after_subscript([a, b]), [_operator((), ())]),
    "unary minus": (lambda: -a, [_operator((), ("a",))]),
    "unary plus": (lambda: +a, [_operator((), ("a",))]),
    "inversion": (lambda: ~a, [_operator((), ("a",))]),
    "comparison": (lambda: a < b, [_operator(("a",), ("b",))]),
    "equality with a constant": (lambda: a == 1, [_operator(("a",), CONSTANT)]),
    "matrix product": (lambda: a @ b, [_operator(("a",), ("b",))]),
    "other operators": (
        lambda: (a / b, a // b, a % b, a & b, a | b, a ^ b),
        [_operator(("a",), ("b",))] * 6,
    ),
    "function": (lambda: f(a, 1), [_call(2, (), ("f",))]),
    "no argument": (lambda: f(), [_call(0, (), ("f",))]),  # noqa: PLW0108 - the call is what is read
    "keywords": (lambda: f(a, dim=1, keepdim=True), [_call(3, ("dim", "keepdim"), ("f",))]),
    "only keywords": (lambda: f(input=a), [_call(1, ("input",), ("f",))]),
    "method": (lambda: a.method(b), [_call(1, (), ("a", "method"), True)]),
    "method without argument": (lambda: a.method(), [_call(0, (), ("a", "method"), True)]),  # noqa: PLW0108
    "keywords of a method": (
        lambda: keywords_of_method(a, b),
        [_call(3, ("dim", "keepdim"), ("one", "method"), True)],
    ),
    "attribute of an attribute": (
        lambda: holder.inner.call(a, b),
        [_call(2, (), ("holder", "inner", "call"), True)],
    ),
    "spread": (lambda: f(*given), [("spread",)]),
    "spread keywords": (lambda: f(1, **options), [("spread",)]),
    "call in a call": (lambda: f(f(a, 1), dim=2), [_call(2, (), ("f",)), _call(2, ("dim",), ("f",))]),
    "operator in a call": (lambda: f(a + b, dim=-1), [_operator(("a",), ("b",)), _call(2, ("dim",), ("f",))]),
    "method on a result": (lambda: f(a).method(1), [_call(1, (), ("f",)), _call(1, (), ("method",), True)]),
    "containers as arguments": (lambda: f([a, b], (a, 1), {"x": a}), [_call(3, (), ("f",))]),
    "subscript as an argument": (lambda: f(given[0], given[:1]), [_call(2, (), ("f",))]),
    "text as an argument": (lambda: f(f"{given} {given!r}", a), [_call(2, (), ("f",))]),
    "loop": (lambda: in_loop([a]), [_call(2, ("scale",), ("holder", "inner", "call"), True)]),
    "comprehension": (lambda: in_comprehension([a]), [_call(2, (), ("f",))]),
    "a branch among the arguments": (lambda: branch_inside(True), [_call(2)]),
    "more constants than a byte counts": (many_constants, [_operator(("a",), CONSTANT), _call(2, ("key",), ("f",))]),
    "sum": (lambda: sum([a]), [_call(1, (), ("sum",))]),
}


def _side(operand: Any) -> Any:
    return CONSTANT if operand.constant else operand.names


def _told(site: Any) -> tuple[Any, ...]:
    if site.kind == "operator":
        return ("operator", _side(site.left), _side(site.right))
    if site.kind == "call":
        return ("call", site.count, site.keywords, site.target, site.attribute)
    return (site.kind,)


@pytest.mark.parametrize("case", CASES)
def test_a_call_site_is_read_alike(case: str) -> None:
    run, expected = CASES[case]
    seen.clear()
    run()
    assert [_told(site) for site in seen] == expected


@pytest.mark.parametrize("case", CASES)
def test_a_call_site_is_read_alike_when_python_has_specialised_the_code(case: str) -> None:
    run, expected = CASES[case]
    for _ in range(100):
        run()
    bytecode._sites.clear()
    seen.clear()
    run()
    assert [_told(site) for site in seen] == expected


def test_what_cannot_be_read_is_neither() -> None:
    assert bytecode.site(None).kind == "other"
    seen.clear()
    a[0]
    assert [site.kind for site in seen] in (["other"], ["operator"])  # from 3.14 on a subscript is a kind of operator
