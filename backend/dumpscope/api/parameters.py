"""Query parameters of several routes, limited so that no value outside a column's range reaches the database."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Path, Query
from starlette.convertors import StringConvertor, register_url_convertor

from dumpscope.index.pair_queries.node_pairs import NodeFilter
from dumpscope.index.store.page import LAST_NUMBER


class _Anything(StringConvertor):
    """A node name: any text, also with slashes and line ends."""

    regex = r"(?s:.+)"


register_url_convertor("anything", _Anything())

INT32 = 2**31 - 1

Id = Annotated[str, Path(pattern=r"^[0-9A-Za-z_-]{1,64}$")]
Limit = Annotated[int, Query(ge=1, le=500, description="Rows of the page; it may end earlier to stay under 200 kB.")]
Cursor = Annotated[str | None, Query(max_length=2000, description="`next` (or `prev`) of the page before.")]
Search = Annotated[str, Query(max_length=500, description="Part of a name.")]
Terms = Annotated[
    str,
    Query(
        max_length=500, description='Parts of a name and terms: `api:linear err>1e-2 class:origin -"x y"` (docs/ui.md).'
    ),
]
Step = Annotated[int | None, Query(ge=0, le=INT32, description="Step; the first one when left out.")]
Rank = Annotated[int | None, Query(ge=0, le=INT32, description="Rank; the first one when left out.")]
Parent = Annotated[int | None, Query(ge=0, le=LAST_NUMBER, description="`entry` of the row whose children to list.")]
Reveal = Annotated[str | None, Query(max_length=4000, description="Answer the way to this node instead.")]
Beside = Annotated[int | None, Query(ge=0, le=LAST_NUMBER, description="`entry` of a child: the rows around it.")]
Level = Annotated[int, Query(alias="from", ge=0, le=LAST_NUMBER, description="First level wanted; 0 is the top.")]
End = Annotated[bool, Query(description="The last page.")]
Place = Annotated[int | None, Query(ge=0, le=LAST_NUMBER, description="Place in the list of the first row wanted.")]
Around = Annotated[str | None, Query(max_length=4000, description="Name of the node in the middle of the page.")]
Verdicts = Annotated[list[str], Query(description="Any of these verdicts; several times or with commas.")]
Classes = Annotated[list[str], Query(alias="class", description="Any of these classes; several times or with commas.")]
Leftovers = Annotated[
    list[str], Query(description="Calls without a partner, for any of these causes (docs/matching.md).")
]
Api = Annotated[str, Query(max_length=300, description="API or module class: softmax, Functional.softmax, Linear.")]
Name = Annotated[str, Path(description="Node name, percent-encoded.")]
Order = Annotated[int | None, Query(ge=0, le=LAST_NUMBER)]
Key = Annotated[int, Path(ge=0, lt=2**53)]


def words(values: list[str]) -> tuple[str, ...]:
    """Values of a parameter that is given several times or with commas."""
    return tuple(part for value in values for part in value.split(",") if part)


async def _node_filter(  # no coroutine would be called in a thread
    verdict: Verdicts = [],  # noqa: B006  (FastAPI copies defaults)
    classes: Classes = [],  # noqa: B006
    leftover: Leftovers = [],  # noqa: B006
    api: Api = "",
    q: Terms = "",
    first: Annotated[Order, Query(alias="from", description="Lowest order.")] = None,
    last: Annotated[Order, Query(alias="to", description="Highest order.")] = None,
) -> NodeFilter:
    return NodeFilter(
        verdicts=words(verdict),
        classes=words(classes),
        leftovers=words(leftover),
        api=api,
        q=q,
        first=first,
        last=last,
    )


Filters = Annotated[NodeFilter, Depends(_node_filter)]
"""Filters of node pairs; the same parameters in all lists and exports."""
