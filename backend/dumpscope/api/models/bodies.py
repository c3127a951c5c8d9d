"""Request bodies, as OpenAPI describes them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from dumpscope.api.models.base import DumpId

Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
"""A name that can be read and clicked."""


class NewDump(BaseModel):
    model_config = ConfigDict(extra="forbid")

    path: Annotated[str, Field(min_length=1, max_length=4096)]
    name: Annotated[str, StringConstraints(strip_whitespace=True, max_length=200)] | None = None


class DumpChange(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: Name


class ComparisonOptions(BaseModel):
    """policy: default, ptdbg, msprobe, or the text of a policy file; mappings: text of msprobe's yaml files; fusion: text of a
    file of fusion rules; matches: text of a file of matches made by hand; parallel: text of a plan for joining ranks, see
    docs/parallel.md."""

    model_config = ConfigDict(extra="forbid")

    policy: str = "default"
    fuzzy: bool = False
    data_mapping: str | None = None
    cell_mapping: str | None = None
    layer_mapping: str | None = None
    rename: Annotated[list[Annotated[str, Field(max_length=2000)]], Field(max_length=100)] = []
    fusion: str | None = None
    matches: str | None = None
    parallel: Annotated[str, Field(max_length=1_000_000)] | None = None
    steps: list[Annotated[int, Field(ge=0, le=2**31 - 1)]] = []
    ranks: list[Annotated[int, Field(ge=0, le=2**31 - 1)]] = []
    tensors: bool = True


class WatchPair(BaseModel):
    """`partner`: the dump to compare with, null for none; `side`: of the watched dump."""

    model_config = ConfigDict(extra="forbid")

    partner: DumpId | None = None
    side: Literal["target", "golden"] = "target"


class NewWatch(WatchPair):
    """`dump`: a registered one, or `path`: of a folder, which is registered if it is not yet, with `name`; `partner_path`
    likewise names the partner, whose folder is then watched as well; `options`: of the comparison, without `steps`."""

    dump: DumpId | None = None
    path: Annotated[str, Field(min_length=1, max_length=4096)] | None = None
    name: Annotated[str, StringConstraints(strip_whitespace=True, max_length=200)] | None = None
    partner_path: Annotated[str, Field(min_length=1, max_length=4096)] | None = None
    options: ComparisonOptions | None = None


class NewPlan(BaseModel):
    """`plan`: text of a plan to complete and check, `{}` or null to find one."""

    model_config = ConfigDict(extra="forbid")

    target: DumpId
    golden: DumpId
    plan: Annotated[str, Field(max_length=1_000_000)] | None = None


class TriedPlan(NewPlan):
    """How one step and unit (the first ones) would be joined; `options`: those that change the matching.

    `q`: list only tensors whose name contains this; `copies`: list also tensors that are equal on all ranks.
    """

    options: ComparisonOptions = ComparisonOptions()
    step: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None
    unit: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None
    q: Annotated[str, Field(max_length=500)] = ""
    copies: bool = False


class MatchingOptions(BaseModel):
    """The options of a comparison that change the matching; an option that is left out is as in the comparison."""

    model_config = ConfigDict(extra="forbid")

    fuzzy: bool | None = None
    data_mapping: str | None = None
    cell_mapping: str | None = None
    layer_mapping: str | None = None
    rename: Annotated[list[Annotated[str, Field(max_length=2000)]], Field(max_length=100)] | None = None
    fusion: str | None = None
    matches: str | None = None


class HandMatch(BaseModel):
    """Two nodes that are the same call."""

    model_config = ConfigDict(extra="forbid")

    target: Annotated[str, Field(min_length=1, max_length=4000)]
    golden: Annotated[str, Field(min_length=1, max_length=4000)]


class HandUnmatch(BaseModel):
    """A node of one side that has no partner."""

    model_config = ConfigDict(extra="forbid")

    side: Literal["target", "golden"]
    node: Annotated[str, Field(min_length=1, max_length=4000)]


class HandMatches(BaseModel):
    """matches: the text of a file of matches made by hand."""

    model_config = ConfigDict(extra="forbid")

    matches: Annotated[str, Field(min_length=1)]


class NewComparison(BaseModel):
    """reference: dump of an absolute reference (the same run on the CPU, or in float64), see docs/reference.md."""

    model_config = ConfigDict(extra="forbid")

    target: DumpId
    golden: DumpId
    reference: DumpId | None = None
    name: Name | None = None
    options: ComparisonOptions = ComparisonOptions()


class ComparisonChange(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: Name | None = None
    policy: Annotated[str, Field(min_length=1, max_length=200_000)] | None = None
