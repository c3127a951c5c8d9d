"""The report: one HTML file that opens offline, has no script, and begins with what went wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Final

from dumpscope.domain.coverage import AGREES, DIVERGED, LOST, NOT_FULLY_JUDGED
from dumpscope.domain.facts import VERDICT_WORDS, Origin, Verdict, confidence_word
from dumpscope.domain.records import Number
from dumpscope.domain.result import Answer
from dumpscope.export.report_style import STYLE
from dumpscope.export.stack_frames import describe_call
from dumpscope.texts import current_language, on_ranks, tell, translate, word

TOP_ROWS: Final = 200
LISTED: Final = 500
ORIGINS: Final = 50
"""Most origins, and calls at which the golden is wrong, that are listed one by one."""
LISTED_ENDS: Final = 8
LETTERS: Final = 300
"""Length of a name or sentence in a list; longer ones are cut in the middle."""
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
    """One item pair in the list of the worst. target, golden: item names, "" if there is none; metrics: numbers by name"""

    target: str
    golden: str
    verdict: Verdict
    metrics: dict[str, Number]
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Data of the report. top: pairs with verdict No, worst first or in the run's order, at most TOP_ROWS are shown
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
    """The whole page, in the language of this context. Every name from a dump is escaped; nothing is fetched."""
    parts = [
        "<!doctype html>",
        f'<html lang="{current_language()}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
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
        kind, where = word("kind", best.kind).capitalize(), on_ranks(best.rank, best.ranks)
        more = tell("report.and_more", count=len(answer.origins) - 1) if len(answer.origins) > 1 else ""
        if best.unseen_loss:
            return tell("report.unseen_loss", node=best.node, step=best.step, where=where, more=more)
        return tell("report.origin", kind=kind, node=best.node, step=best.step, where=where, more=more)
    if answer.first_no is not None:
        return tell("report.no_origin", item=answer.first_no.item)
    if any(problem.kind == "nothing_compared" for problem in answer.problems):
        return tell("report.no_tensor_compared")
    if answer.counts.nothing_met:
        return tell("report.nothing_compared")
    if answer.incomplete:
        return _not_judged(answer)
    if answer.counts.warning:
        return tell("report.warnings", warnings=answer.counts.warning)
    if not answer.counts.judged:
        return tell("report.structure_agrees")
    return tell("report.no_divergence")


def _not_judged(answer: Answer) -> str:
    """The third form of the answer: from which call on something was not judged, and why."""
    first = None if answer.coverage is None else answer.coverage.first
    if first is not None:
        why = translate(first.sentence, first.said)
        return tell("report.not_judged", node=first.node, step=first.step, rank=first.rank, why=why)
    lost = next((problem for problem in answer.problems if problem.kind in LOST), None)
    why = "" if lost is None else f"{lost.loc}: {translate(lost.message)}"
    return tell("report.not_judged_parts", why=why)


def coverage_sentences(answer: Answer) -> list[str]:
    """What was judged by what, and what was not, each group of reasons with its counts; where a record ends early."""
    coverage = answer.coverage
    if coverage is None or not coverage.items:
        return []
    groups: dict[str, list[str]] = {}
    for one in coverage.counted():
        part = tell("covered.part", count=one["items"], reason=tell(f"reason.{one['reason']}"))
        groups.setdefault(one["group"], []).append(part)
    said = [
        tell("covered.line", group=tell(f"covered.{group}"), total=coverage.group(group), parts=", ".join(parts))
        for group, parts in groups.items()
    ]
    for end in coverage.ends[:LISTED_ENDS]:
        said.append(
            tell(
                "report.record_ends", side=tell(f"side.{end.side}"), node=end.node, step=end.step, rank=end.rank,
                following=end.following, items=end.items,
            )
        )  # fmt: skip
    return said


def unjudged_sentence(answer: Answer) -> str:
    """From which call on a diverged pair was not judged; "" where all was, or where the headline says it."""
    first = None if answer.coverage is None else answer.coverage.first
    if first is None or not answer.diverged:
        return ""
    why = translate(first.sentence, first.said)
    return tell("report.not_judged_too", node=first.node, step=first.step, rank=first.rank, why=why)


_TONES: Final = {AGREES: "fine", DIVERGED: "bad", NOT_FULLY_JUDGED: "open"}


def _banner(answer: Answer) -> Iterator[str]:
    tone = _TONES[answer.outcome]
    yield f'<section class="banner {tone}"><h2>{escape(headline(answer))}</h2>'
    for origin in answer.origins[:ORIGINS]:
        yield from _origin(origin)
    if len(answer.origins) > ORIGINS:
        yield f"<p>{escape(tell('report.more_origins', count=len(answer.origins) - ORIGINS))}</p>"
    for one in answer.reference.golden_off[:ORIGINS] if answer.reference is not None else ():
        numbers = {"ratio": f"{one.ratio:.3g}", "golden": f"{one.golden:.3g}", "target": f"{one.target:.3g}"}
        yield (
            f'<article class="origin"><h3><code>{escape(one.node)}</code>'
            f' <span class="tag">{escape(tell("report.golden_off"))}</span>'
            f' <span class="tag">step {one.step} rank {one.rank}</span></h3>'
            f"<p>{escape(tell('report.golden_farther', **numbers))}</p>"
        )
        yield from _stack(one.stack)
        yield "</article>"
    unjudged = unjudged_sentence(answer)
    for sentence in [*([unjudged] if unjudged else []), *settings_sentences(answer)]:
        yield f"<p>⚠ {escape(sentence)}</p>"
    yield "</section>"


def settings_sentences(answer: Answer) -> list[str]:
    """Differences in the settings of the two dumps, in the language of this context."""
    said = answer.settings_said
    if len(said) != len(answer.settings):  # stored by an older version
        return answer.settings
    return [translate(sentence, [one]) for sentence, one in zip(answer.settings, said, strict=True)]


def _origin(origin: Origin) -> Iterator[str]:
    yield (
        f'<article class="origin"><h3><code>{escape(origin.node)}</code>'
        f' <span class="tag">{escape(word("kind", "unseen_loss" if origin.unseen_loss else origin.kind))}</span>'
        f' <span class="tag">{escape(tell("report.confidence", confidence=say_confidence(origin)))}</span>'
        f' <span class="tag">step {origin.step} {translate(on_ranks(origin.rank, origin.ranks))}</span></h3>'
    )
    yield f"<p>{escape(translate(origin.evidence, origin.evidence_said))}</p>"
    if origin.explains:
        yield f"<p>{escape(tell('report.explains', count=origin.explains))}</p>"
    if origin.advice:
        advice = translate(origin.advice, origin.advice_said)
        yield f"<p><b>{escape(tell('report.what_to_do'))}</b> {escape(advice)}</p>"
    if origin.module:
        yield f"<p>{escape(tell('report.in_module'))} <code>{escape(origin.module)}</code></p>"
    yield from _stack(origin.stack)
    yield "</article>"


def say_confidence(origin: Origin) -> str:
    """As a word and in per cent: "high (85 %)"."""
    share = f"{100 * origin.confidence:.0f}"
    return tell("report.confidence_share", word=word("confidence", confidence_word(origin.confidence)), share=share)


def _stack(stack: Sequence[str]) -> Iterator[str]:
    if not stack:
        return
    where = describe_call(stack)
    if where:
        yield f"<p>{escape(tell('report.called_at'))} <code>{escape(where)}</code></p>"
    frames = "\n".join(_cut(text.strip()) for text in stack[:_FRAMES])
    summary = escape(tell("report.call_stack", count=len(stack)))
    yield f"<details><summary>{summary}</summary><pre>{frames}</pre></details>"


def _sides(report: Report) -> Iterator[str]:
    answer = report.answer
    target, golden = (escape(tell(f"side.{side}")) for side in ("target", "golden"))
    yield f"<section><h2>{escape(tell('report.compared'))}</h2><table><tr><th></th><th>{target}</th><th>{golden}</th></tr>"
    for name in ("path", "framework", "task", "level", "steps", "ranks"):
        both = (getattr(answer.target, name), getattr(answer.golden, name))
        cells = "".join(f"<td>{escape(_listed(value))}</td>" for value in both)
        yield f"<tr><th>{escape(tell(f'report.{name}'))}</th>{cells}</tr>"
    how = tell("report.how", mode=word("mode", answer.mode), policy=answer.policy)
    yield f"</table><p>{escape(how)}</p>"
    counts = answer.counts
    shown = {
        "report.calls": counts.nodes, "report.item_pairs": counts.items, "report.no": counts.no,
        "report.warning": counts.warning, "report.yes": counts.yes, "report.not_comparable": counts.not_comparable,
        "report.only_target": counts.unmatched_target, "report.only_golden": counts.unmatched_golden,
        "report.unreadable": counts.unreadable,
    }  # fmt: skip
    yield '<dl class="counts">'
    yield "".join(f"<div><dt>{escape(tell(name))}</dt><dd>{count}</dd></div>" for name, count in shown.items())
    yield "</dl>"
    judged = "".join(f"<li>{escape(sentence)}</li>" for sentence in coverage_sentences(answer))
    yield f'<ul class="coverage">{judged}</ul>' if judged else ""
    if report.classes:
        classes = ", ".join(f"{word('class', name)} {count}" for name, count in report.classes.items())
        yield f"<p>{escape(tell('report.by_class', classes=classes))}</p>"
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
    yield f"<section><h2>{escape(tell('report.first_difference'))}</h2><p><code>{escape(first.item)}</code>"
    yield f" (step {first.step}, rank {first.rank}): {escape(translate(first.reason, first.reason_said))}</p>"
    yield from _stack(first.stack)
    yield "</section>"


def _top(report: Report) -> Iterator[str]:
    if not report.top:
        return
    names = _SHOWN.get(report.answer.mode, ())
    words = (tell(f"report.{name}") for name in ("item", "golden_item", "verdict", "score"))
    heads = "".join(f"<th>{escape(name)}</th>" for name in (*words, *names, tell("report.why")))
    shown = list(report.top[:TOP_ROWS])
    title = tell("report.pairs_no", shown=len(shown), total=report.answer.counts.no)
    yield f"<section><h2>{escape(title)}</h2>"
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
    """The text, escaped and cut in the middle if too long, because names begin alike and end differently."""
    if len(text) > LETTERS:
        half = LETTERS // 2
        text = f"{text[:half]} … {text[-half:]}"
    return escape(text)


def _glyph(verdict: Verdict) -> str:
    signs = {Verdict.NO: "✗", Verdict.WARNING: "!", Verdict.YES: "✓", Verdict.NA: "–"}
    return f"{signs[verdict]} {word('verdict', VERDICT_WORDS[verdict])}"


def _number(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _structure(report: Report) -> Iterator[str]:
    sides = (("target", report.unmatched_target), ("golden", report.unmatched_golden))
    if not any(names for _, names in sides):
        return
    yield f"<section><h2>{escape(tell('report.without_partner'))}</h2>"
    for side, names in sides:
        if names:
            shown = "\n".join(_cut(name) for name in names[:LISTED])
            more = "\n" + escape(tell("report.names_more", count=len(names) - LISTED)) if len(names) > LISTED else ""
            summary = escape(tell("report.only_in", count=len(names), side=side))
            yield f"<details open><summary>{summary}</summary><pre>{shown}{more}</pre></details>"
    yield "</section>"


def _problems(answer: Answer) -> Iterator[str]:
    if not answer.problems:
        return
    yield f"<section><h2>{escape(tell('report.problems', count=len(answer.problems)))}</h2><ul>"
    for problem in answer.problems[:LISTED]:
        yield f"<li><b>{escape(problem.kind)}</b> <code>{_cut(problem.loc)}</code>: {_cut(translate(problem.message))}</li>"
    yield "</ul></section>"
