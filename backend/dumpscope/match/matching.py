"""State of the matching of two sides: which entries are paired, how, and which are still free."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from dumpscope.domain.facts import Method
from dumpscope.domain.records import NodeKind
from dumpscope.match.renames.mapping_files import LayerNames
from dumpscope.match.sides import Side


@dataclass(frozen=True, slots=True, kw_only=True)
class Fusion:
    """One fused call and the run of calls that does the same on the other side (for a backward pass in reverse order).

    target, golden: the entries that form the pair: the fused call, and the call of the run that ends it
    inner: all entries of the run; on_target: the run is the target's; around: modules that hold only the fused call
    items: (target item, golden item) at the boundary
    confidence: of the pair and of the inner calls
    """

    target: int
    golden: int
    inner: tuple[int, ...]
    around: tuple[int, ...]
    on_target: bool
    items: tuple[tuple[int, int], ...]
    confidence: float

    def flipped(self) -> Fusion:
        return replace(
            self,
            target=self.golden,
            golden=self.target,
            on_target=not self.on_target,
            items=tuple((g, t) for t, g in self.items),
        )


@dataclass(slots=True, kw_only=True)
class Matching:
    """partner: target entry -> golden entry; method per target entry. Entries are tree entries of both sides.

    renamed: target label -> golden label, given by the user; ruled: such a label -> number of the rename rule
    layers: golden paths by the user's layer_mapping, None without one
    beyond_target, beyond_golden: entries of a kind that the other side's dump cannot hold
    """

    target: Side
    golden: Side
    partner: dict[int, int] = field(default_factory=dict)
    method: dict[int, Method] = field(default_factory=dict)
    taken: set[int] = field(default_factory=set)
    labels: dict[str, str] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)
    ruled: dict[str, int] = field(default_factory=dict)
    layers: LayerNames | None = None
    fusions: list[Fusion] = field(default_factory=list)
    inside_target: dict[int, Fusion] = field(default_factory=dict)
    inside_golden: dict[int, Fusion] = field(default_factory=dict)
    beyond_target: set[int] = field(default_factory=set)
    beyond_golden: set[int] = field(default_factory=set)

    def pair(self, t: int, g: int, method: Method | None = None) -> bool:
        """Pair two entries unless one has a partner. Without `method`, the two names decide the method."""
        if not (self.free_target(t) and self.free_golden(g)):
            return False
        self.partner[t] = g
        self.taken.add(g)
        self.method[t] = method if method is not None else self._judge(t, g)
        if self.target.kind[t] == NodeKind.MODULE:
            self.labels.setdefault(self.target.label[t], self.golden.label[g])
        return True

    def pair_all(self) -> None:
        """Pair every entry with that of its number; the two sides hold the same ones, and none has a partner."""
        entries = range(len(self.target.dump.tree))
        self.partner = dict(zip(entries, entries, strict=True))
        self.taken = set(entries)
        self.method = dict.fromkeys(entries, Method.EXACT)
        modules = [entry for entry in entries if self.target.kind[entry] == NodeKind.MODULE]
        for entry in modules:
            self.labels.setdefault(self.target.label[entry], self.golden.label[entry])

    def free_target(self, t: int) -> bool:
        return t not in self.partner and t not in self.inside_target

    def free_golden(self, g: int) -> bool:
        return g not in self.taken and g not in self.inside_golden

    def fuse(self, fusion: Fusion) -> None:
        """Pair a fused call with the end of its run and set the run's other calls aside; all must be free."""
        self.pair(fusion.target, fusion.golden, Method.FUSED)
        self.fusions.append(fusion)
        self.inside_target.update(_inside([fusion], on_target=True))
        self.inside_golden.update(_inside([fusion], on_target=False))

    def unpair(self, t: int | None, g: int | None) -> None:
        """Take the partner from a target entry and from a golden entry; a fusion that one of them belongs to is dissolved."""
        undone = {
            fusion
            for fusion in self.fusions
            if (t is not None and self.inside_target.get(t) is fusion)
            or (g is not None and self.inside_golden.get(g) is fusion)
            or fusion.target == t
            or fusion.golden == g
        }
        for fusion in undone:
            self._split(fusion.target)
        if undone:
            self.fusions = [fusion for fusion in self.fusions if fusion not in undone]
            self.inside_target = _inside(self.fusions, on_target=True)
            self.inside_golden = _inside(self.fusions, on_target=False)
        if t is not None:
            self._split(t)
        if g is not None and g in self.taken:
            self._split(next(entry for entry, partner in self.partner.items() if partner == g))

    def _split(self, t: int) -> None:
        if t in self.partner:
            self.taken.discard(self.partner.pop(t))
            del self.method[t]

    def _judge(self, t: int, g: int) -> Method:
        t_label, g_label = self.target.label[t], self.golden.label[g]
        if self.target.name(t) == self.golden.name(g):
            return Method.EXACT
        if t_label == g_label:
            return Method.ALIGNED
        return Method.MAPPED if self.renamed.get(t_label) == g_label else Method.RENAMED

    def flipped(self) -> Matching:
        """The same pairs with target and golden exchanged."""
        back = {g: t for t, g in self.partner.items()}
        return Matching(
            target=self.golden,
            golden=self.target,
            partner=back,
            method={g: self.method[t] for g, t in back.items()},
            taken=set(self.partner),
            labels={golden: target for target, golden in self.labels.items()},
            fusions=(fusions := [fusion.flipped() for fusion in self.fusions]),
            inside_target=_inside(fusions, on_target=True),
            inside_golden=_inside(fusions, on_target=False),
            beyond_target=self.beyond_golden,
            beyond_golden=self.beyond_target,
        )


def _inside(fusions: list[Fusion], *, on_target: bool) -> dict[int, Fusion]:
    return {
        entry: fusion
        for fusion in fusions
        for entry in (fusion.inner if fusion.on_target == on_target else fusion.around)
        if entry != (fusion.target if on_target else fusion.golden)
    }
