"""The report: one HTML file that opens offline, holds no script, and says first what went wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Final

from dumpscope.domain.facts import VERDICT_WORDS, Origin, Verdict
from dumpscope.domain.numbering import on_ranks
from dumpscope.domain.result import Answer
from dumpscope.export.report_style import STYLE
from dumpscope.export.stack_frames import user_frame
from dumpscope.export.table.rows import Number

TOP_ROWS: Final = 200
LISTED: Final = 500
ORIGINS: Final = 50
"""Origins, and calls where the golden is off, that are told one by one."""
LETTERS: Final = 300
"""Of a name or sentence in a list; what is longer is cut in its middle."""
_FRAMES: Final = 64
_SHOWN: Final = {
    "tensor": ("cosine", "max_abs", "max_rel", "rel_l2", "max_ulp", "nonfinite_disagree"),
    "statistics": ("max_rel", "min_rel", "mean_rel", "norm_rel", "max_diff", "norm_diff"),
    "md5": (),
    "structure": (),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """One figure of the report: an SVG element and the same in words."""

    title: str
    svg: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TopRow:
    """One item pair of the list of the worst. target, golden: item names, "" where there is none; metrics: numbers by name"""

    target: str
    golden: str
    verdict: Verdict
    metrics: dict[str, Number]
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What the report shows. top: pairs with verdict No, worst first or in the run's order, at most TOP_ROWS are shown
    unmatched_target, unmatched_golden: names of calls without a partner; classes: number of calls by class
    """

    title: str
    answer: Answer
    version: str
    drawings: Sequence[Drawing] = ()
    top: Sequence[TopRow] = ()
    unmatched_target: Sequence[str] = ()
    unmatched_golden: Sequence[str] = ()
    classes: dict[str, int] = field(default_factory=dict)


def report_html(report: Report) -> str:
    """The whole page. Every name from a dump is escaped; nothing is fetched."""
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">',
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        f"<title>{escape(report.title)}</title><style>{STYLE}</style></head><body><main>",
        f"<h1>{escape(report.title)}</h1>",
        *_banner(report.answer),
        *_sides(report),
        *_drawings(report.drawings),
        *_first(report.answer),
        *_top(report),
        *_structure(report),
        *_problems(report.answer),
        f"<footer>dumpscope {escape(report.version)}</footer></main></body></html>",
    ]
    return "\n".join(parts)


def headline(answer: Answer) -> str:
    """The finding in one sentence."""
    if answer.origins:
        best = answer.origins[0]
        more = f" and {len(answer.origins) - 1} more" if len(answer.origins) > 1 else ""
        return f"{best.kind.capitalize()} at {best.node} (step {best.step}, {on_ranks(best.rank, best.ranks)}){more}"
    if answer.first_no is not None:
        return f"No origin found; the first difference is {answer.first_no.item}"
    if answer.counts.warning:
        return f"No divergence; {answer.counts.warning} warnings"
    if any(problem.kind == "nothing_compared" for problem in answer.problems):
        return "No tensor could be compared with its partner; what else there is agrees"
    if answer.counts.nothing_met:
        return "Nothing could be compared: no item of the target has a partner in the golden dump"
    if not answer.counts.judged:
        return "No divergence in structure; there were no numbers to compare"
    return "No divergence"


def _banner(answer: Answer) -> Iterator[str]:
    tone = "bad" if answer.origins or answer.first_no or answer.compared_nothing else "fine"
    yield f'<section class="banner {tone}"><h2>{escape(headline(answer))}</h2>'
    for origin in answer.origins[:ORIGINS]:
        yield from _origin(origin)
    if len(answer.origins) > ORIGINS:
        yield f"<p>… and {len(answer.origins) - ORIGINS} more origins.</p>"
    for one in answer.reference.golden_off[:ORIGINS] if answer.reference is not None else ():
        yield (
            f'<article class="origin"><h3><code>{escape(one.node)}</code> <span class="tag">golden is off</span>'
            f' <span class="tag">step {one.step} rank {one.rank}</span></h3>'
            f"<p>Here the golden is the one that is off: {one.ratio:.3g} times as far from the reference as the target"
            f" (golden {one.golden:.3g}, target {one.target:.3g}).</p>"
        )
        yield from _stack(one.stack)
        yield "</article>"
    for sentence in answer.settings:
        yield f"<p>⚠ {escape(sentence)}</p>"
    yield "</section>"


def _origin(origin: Origin) -> Iterator[str]:
    yield (
        f'<article class="origin"><h3><code>{escape(origin.node)}</code> <span class="tag">{escape(origin.kind)}</span>'
        f' <span class="tag">confidence {origin.confidence:.0%}</span>'
        f' <span class="tag">step {origin.step} {on_ranks(origin.rank, origin.ranks)}</span></h3>'
    )
    yield f"<p>{escape(origin.evidence)}</p>"
    if origin.explains:
        yield f"<p>Explains {origin.explains} further difference{'s' if origin.explains > 1 else ''}.</p>"
    if origin.advice:
        yield f"<p><b>What to do:</b> {escape(origin.advice)}</p>"
    yield from _stack(origin.stack)
    yield "</article>"


def _stack(stack: Sequence[str]) -> Iterator[str]:
    if not stack:
        return
    frame = user_frame(stack)
    if frame is not None:
        yield f"<p>Called at <code>{escape(str(frame))}</code></p>"
    frames = "\n".join(_cut(text.strip()) for text in stack[:_FRAMES])
    yield f"<details><summary>call stack, {len(stack)} frames</summary><pre>{frames}</pre></details>"


def _sides(report: Report) -> Iterator[str]:
    answer = report.answer
    yield "<section><h2>What was compared</h2><table><tr><th></th><th>target</th><th>golden</th></tr>"
    for name in ("path", "framework", "task", "level", "steps", "ranks"):
        both = (getattr(answer.target, name), getattr(answer.golden, name))
        cells = "".join(f"<td>{escape(_listed(value))}</td>" for value in both)
        yield f"<tr><th>{name}</th>{cells}</tr>"
    yield f"</table><p>Mode {escape(answer.mode)}, policy {escape(answer.policy)}.</p>"
    counts = answer.counts
    shown = {
        "calls": counts.nodes, "item pairs": counts.items, "No": counts.no, "Warning": counts.warning, "Yes": counts.yes,
        "not comparable": counts.not_comparable, "only in target": counts.unmatched_target,
        "only in golden": counts.unmatched_golden, "unreadable": counts.unreadable,
    }  # fmt: skip
    yield '<dl class="counts">'
    yield "".join(f"<div><dt>{escape(word)}</dt><dd>{count}</dd></div>" for word, count in shown.items())
    yield "</dl>"
    if report.classes:
        yield f"<p>Calls by class: {escape(', '.join(f'{word} {count}' for word, count in report.classes.items()))}.</p>"
    yield "</section>"


def _listed(value: object) -> str:
    if isinstance(value, list):
        shown = ", ".join(map(str, value[:32]))
        return f"{shown} … ({len(value)})" if len(value) > 32 else shown
    return str(value)


def _drawings(drawings: Iterable[Drawing]) -> Iterator[str]:
    for drawing in drawings:
        yield f"<section><h2>{escape(drawing.title)}</h2><figure>{drawing.svg}"
        yield f"<figcaption>{escape(drawing.text)}</figcaption></figure></section>"


def _first(answer: Answer) -> Iterator[str]:
    first = answer.first_no
    if first is None:
        return
    yield f"<section><h2>First difference in execution order</h2><p><code>{escape(first.item)}</code>"
    yield f" (step {first.step}, rank {first.rank}): {escape(first.reason)}</p>"
    yield from _stack(first.stack)
    yield "</section>"


def _top(report: Report) -> Iterator[str]:
    if not report.top:
        return
    names = _SHOWN.get(report.answer.mode, ())
    heads = "".join(f"<th>{escape(name)}</th>" for name in ("item", "golden item", "verdict", "score", *names, "why"))
    shown = list(report.top[:TOP_ROWS])
    yield f"<section><h2>Pairs with verdict No ({len(shown)} of {report.answer.counts.no})</h2>"
    yield f'<div class="wide"><table><tr>{heads}</tr>'
    for row in shown:
        numbers = "".join(f"<td>{escape(_number(row.metrics.get(name)))}</td>" for name in ("score", *names))
        yield (
            f"<tr><td><code>{_cut(row.target)}</code></td>"
            f"<td><code>{_cut(row.golden)}</code></td>"
            f'<td class="{VERDICT_WORDS[row.verdict].replace("/", "")}">{_glyph(row.verdict)}</td>'
            f"{numbers}<td>{_cut(row.message)}</td></tr>"
        )
    yield "</table></div></section>"


def _cut(text: str) -> str:
    """Escaped, and cut in the middle where it is too long: names begin alike and end differently."""
    if len(text) > LETTERS:
        half = LETTERS // 2
        text = f"{text[:half]} … {text[-half:]}"
    return escape(text)


def _glyph(verdict: Verdict) -> str:
    return {Verdict.NO: "✗ no", Verdict.WARNING: "! warning", Verdict.YES: "✓ yes", Verdict.NA: "– n/a"}[verdict]


def _number(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _structure(report: Report) -> Iterator[str]:
    sides = (("target", report.unmatched_target), ("golden", report.unmatched_golden))
    if not any(names for _, names in sides):
        return
    yield "<section><h2>Calls without a partner</h2>"
    for word, names in sides:
        if names:
            shown = "\n".join(_cut(name) for name in names[:LISTED])
            more = f"\n… and {len(names) - LISTED} more" if len(names) > LISTED else ""
            yield f"<details open><summary>{len(names)} only in {word}</summary><pre>{shown}{more}</pre></details>"
    yield "</section>"


def _problems(answer: Answer) -> Iterator[str]:
    if not answer.problems:
        return
    yield f"<section><h2>Problems ({len(answer.problems)})</h2><ul>"
    for problem in answer.problems[:LISTED]:
        yield f"<li><b>{escape(problem.kind)}</b> <code>{_cut(problem.loc)}</code>: {_cut(problem.message)}</li>"
    yield "</ul></section>"
