"""The tables, for SQLite and PostgreSQL alike.

A row that belongs to a rank of a dump or to a unit of a comparison (one step and rank) has the primary key
`owner << KEY_BITS | number`: the number is the row's place in the columns of `domain`, so a range of keys is one owner's rows in
order, no second index is needed for it, and joins are arithmetic. Text that repeats lies once in `text`, stacks once in `stack`
as lists of frame ids. A float that may be not finite has a state beside it (three bits each in `*states`, see
`codec.pack_states`): SQLite turns NaN into NULL, and NaN is not the same as absent.
`severity` is never null: a score, -1 where nothing was compared.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Double,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    String,
    Table,
    Text,
    UniqueConstraint,
    literal,
    text as sql_text,
)

from dumpscope.index.store.page import LAST_NUMBER

NUMBER_MASK: Final = LAST_NUMBER

KEY_BITS: Final = NUMBER_MASK.bit_length()
"""Rows of one owner at most 2**28; owners at most 2**25, so that keys stay exact in JavaScript."""

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

Key = BigInteger().with_variant(Integer(), "sqlite")


def key(owner: int, number: int = 0) -> int:
    """Primary key of an owner's row."""
    return owner << KEY_BITS | number


def key_range(owner: int) -> tuple[int, int]:
    """First and last key that an owner's rows can have (for BETWEEN)."""
    return owner << KEY_BITS, owner << KEY_BITS | NUMBER_MASK


def key_at(owner: int, number: ColumnElement[int]) -> ColumnElement[int]:
    """Primary key, inside a statement, of an owner's row whose number is in a column.

    As a plain operand beside a column of 32 bits the owner's part would be sent as 32 bits too, which are too few for PostgreSQL
    from the eighth owner on.
    """
    return literal(key(owner), BigInteger) + number


text = Table(
    "text",
    metadata,
    Column("id", Key, primary_key=True, autoincrement=True),
    Column("digest", LargeBinary, nullable=False, unique=True),
    Column("text", Text, nullable=False),
)

stack = Table(
    "stack",
    metadata,
    Column("id", Key, primary_key=True, autoincrement=True),
    Column("digest", LargeBinary, nullable=False, unique=True),
    Column("frames", Text, nullable=False),  # JSON list of text ids, innermost first
)

dump = Table(
    "dump",
    metadata,
    Column("serial", Key, primary_key=True, autoincrement=True),
    Column("id", String(32), nullable=False, unique=True),
    Column("name", Text, nullable=False),
    Column("path", Text, nullable=False),
    Column("owned", SmallInteger, nullable=False),  # 1: its files lie in the data folder and go when it is deleted
    Column("status", String(16), nullable=False),
    Column("job", String(32)),
    Column("error", Text),
    Column("framework", Text),
    Column("task", Text),
    Column("level", Text),
    Column("summary", Text),
    Column("steps", Text, nullable=False),
    Column("ranks", Text, nullable=False),
    Column("nodes", Integer, nullable=False),
    Column("items", Integer, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("created", Double, nullable=False),
    Column("problems", Text, nullable=False),
)

rank_dump = Table(
    "rank_dump",
    metadata,
    Column("id", Key, primary_key=True, autoincrement=True),
    Column("dump", BigInteger, nullable=False),  # negative: unseen, see owners
    Column("step", Integer, nullable=False),
    Column("rank", Integer, nullable=False),
    Column("place", Text, nullable=False),  # JSON of RankRef
    Column("header", Text, nullable=False),  # JSON of Header
    Column("inferred", SmallInteger, nullable=False),
    Column("nodes", Integer, nullable=False),
    Column("entries", Integer, nullable=False),
    Column("items", Integer, nullable=False),
    Column("wide", Text, nullable=False),  # JSON [[item, statistic, "integer"], ...]
    Column("problems", Text, nullable=False),
    Column("stamp", Text),  # readers.glance: state of its files when it was read
    Column("bytes", BigInteger),  # of its JSON files
    Column("calls", BigInteger),  # codec.calls_digest of its nodes; null: stored by an older version
    UniqueConstraint("dump", "step", "rank"),
)

entry = Table(
    "entry",
    metadata,
    Column("id", Key, primary_key=True, autoincrement=False),
    Column("parent", BigInteger, nullable=False),  # key of the parent entry, -rank_dump.id at the top
    Column("seq", Integer, nullable=False),
    Column("name", Text, nullable=False),
    Column("kind", SmallInteger),  # null: a virtual entry
    Column("direction", SmallInteger),
    Column("label", BigInteger),
    Column("call", Integer),
    Column("stack", BigInteger),
    Column("micro", Integer),
    Column("children", Integer, nullable=False),
    Column("size", Integer, nullable=False),  # dumped nodes in the subtree
    Column("first_item", Integer),
    Column("item_count", Integer),
    Index(None, "parent", "seq"),
    Index(None, "name", "id"),
    Index(None, "label", "id"),
)

item = Table(  # of ranks that were stored before there were blocks: see item_block
    "item",
    metadata,
    Column("id", Key, primary_key=True, autoincrement=False),
    Column("node", Integer, nullable=False),
    Column("role", SmallInteger, nullable=False),
    Column("kind", SmallInteger, nullable=False),
    Column("path", BigInteger),
    Column("type", BigInteger),
    Column("dtype", BigInteger),
    Column("shape", BigInteger),
    Column("max", Double),
    Column("min", Double),
    Column("mean", Double),
    Column("norm", Double),
    Column("states", Integer, nullable=False),
    Column("requires_grad", SmallInteger),
    Column("hash", Text),
    Column("value", BigInteger),
    Column("data_name", BigInteger),  # text id; negative: codec.DERIVED_SUFFIXES behind the item's own name
)

item_block = Table(
    "item_block",
    metadata,
    Column("id", Key, primary_key=True, autoincrement=False),  # of the first of its items
    Column("columns", LargeBinary, nullable=False),  # store.item_blocks.pack_block
)

comparison = Table(
    "comparison",
    metadata,
    Column("serial", Key, primary_key=True, autoincrement=True),
    Column("id", String(32), nullable=False, unique=True),
    Column("name", Text, nullable=False),
    Column("status", String(16), nullable=False),
    Column("job", String(32)),
    Column("error", Text),
    Column("target", BigInteger, nullable=False),
    Column("golden", BigInteger, nullable=False),
    Column("options", Text, nullable=False),
    Column("mode", Text),
    Column("verdict", String(8)),
    Column("answer", Text),  # JSON: Answer without its problems' bulk, see results.store_answer
    Column("created", Double, nullable=False),
    Column("reference", BigInteger),
    Column("watched", SmallInteger),  # 1: made by a watch
    Column("growing", Text),  # JSON [{"side", "step", "calls"}]: what was still being written when it was compared
    Index(None, "target"),
    Index(None, "golden"),
    Index(None, "reference"),
)

unit = Table(
    "unit",
    metadata,
    Column("id", Key, primary_key=True, autoincrement=True),
    Column("comparison", BigInteger, nullable=False),  # negative: unseen, see owners
    Column("step", Integer, nullable=False),
    Column("rank", Integer, nullable=False),
    Column("target", BigInteger, nullable=False),  # rank_dump.id
    Column("golden", BigInteger, nullable=False),
    Column("mode", Text, nullable=False),
    Column("inferred", SmallInteger, nullable=False),
    Column("pairs", Integer, nullable=False),
    Column("items", Integer, nullable=False),
    Column("backward", Integer),  # number of the first backward node pair
    Column("verdict", SmallInteger, nullable=False),
    Column("counts", Text, nullable=False),  # JSON {"yes": node pairs, ..., "classes": {word: node pairs}}
    Column("problems", Text, nullable=False),
    Column("calls", BigInteger),  # codec.calls_digest of its node pairs; null: stored by an older version
    UniqueConstraint("comparison", "step", "rank"),
)

_NAMED: Final = sql_text("golden_name IS NOT NULL")

node_pair = Table(
    "node_pair",
    metadata,
    Column("id", Key, primary_key=True, autoincrement=False),
    Column("target", Integer),
    Column("golden", Integer),
    Column("method", SmallInteger, nullable=False),
    Column("confidence", Double, nullable=False),
    Column("name", Text, nullable=False),  # the target's name, the golden's where there is no target
    Column("golden_name", Text),  # only where both exist and differ
    Column("kind", SmallInteger, nullable=False),
    Column("direction", SmallInteger, nullable=False),
    Column("label", BigInteger),
    Column("verdict", SmallInteger, nullable=False),
    Column("cls", SmallInteger, nullable=False),
    Column("in_score", Double, nullable=False),
    Column("severity", Double, nullable=False),  # the out score
    Column("in_error", Double),
    Column("out_error", Double),
    Column("error_states", SmallInteger, nullable=False),
    Column("entry", Integer, nullable=False),
    Column("first_item", Integer, nullable=False),
    Column("item_count", Integer, nullable=False),
    Column("yes", Integer, nullable=False),  # item pairs by verdict
    Column("na", Integer, nullable=False),
    Column("warning", Integer, nullable=False),
    Column("no", Integer, nullable=False),
    Column("leftover", SmallInteger),  # why it has no partner; null: it has one
    Column("beside", Integer),  # node pair that the cause is told from
    Column("target_distance", Double),  # from the reference, of the output that decides
    Column("golden_distance", Double),
    Column("distance_measure", SmallInteger),
    Column("ratio", Double, nullable=False, server_default="-1"),  # -1 where nothing was measured
    Column("inverse", Double),
    Index(None, "name", "id"),
    Index(None, "golden_name", "id", sqlite_where=_NAMED, postgresql_where=_NAMED),
    Index(None, "label", "id"),
    Index(None, "verdict", "id"),
    Index(None, "cls", "id"),
)

place = Table(
    "place",
    metadata,
    Column("id", Key, primary_key=True, autoincrement=False),
    Column("parent", BigInteger, nullable=False),  # key of the parent place, -unit.id at the top
    Column("seq", Integer, nullable=False),
    Column("pair", Integer),  # node pair number; null: virtual
    Column("name", Text),  # only of virtual places
    Column("children", Integer, nullable=False),
    Column("yes", Integer, nullable=False),  # node pairs of the subtree by verdict
    Column("na", Integer, nullable=False),
    Column("warning", Integer, nullable=False),
    Column("no", Integer, nullable=False),
    Column("origin", Integer, nullable=False),
    Index(None, "parent", "seq"),
)

item_pair = Table(
    "item_pair",
    metadata,
    Column("id", Key, primary_key=True, autoincrement=False),
    Column("node", Integer, nullable=False),
    Column("target", Integer),
    Column("golden", Integer),
    Column("outcome", SmallInteger, nullable=False),
    Column("flags", SmallInteger, nullable=False),  # codec.pack_flags: equal, dtype_differs
    Column("diff_max", Double),
    Column("diff_min", Double),
    Column("diff_mean", Double),
    Column("diff_norm", Double),
    Column("rel_max", Double),
    Column("rel_min", Double),
    Column("rel_mean", Double),
    Column("rel_norm", Double),
    Column("states", Integer, nullable=False),
    Column("elements", BigInteger),
    Column("verdict", SmallInteger, nullable=False),
    Column("rule", SmallInteger, nullable=False),
    Column("severity", Double, nullable=False),
)

producers = Table(
    "producers",
    metadata,
    Column("id", Key, primary_key=True, autoincrement=False),  # the rank_dump's first key
    Column("made", LargeBinary, nullable=False),  # codec.pack_producers of all its items
)

tensor_fact = Table(
    "tensor_fact",
    metadata,
    Column("id", Key, primary_key=True, autoincrement=False),  # the item pair's key
    Column("cosine", Double),
    Column("euclidean", Double),
    Column("max_abs", Double),
    Column("max_rel", Double),
    Column("ratio_1e3", Double),
    Column("ratio_5e3", Double),
    Column("rel_l2", Double),
    Column("max_ulp", Double),
    Column("median_ulp", Double),
    Column("states", Integer, nullable=False),
    Column("unequal", BigInteger),
    Column("nonfinite_target", BigInteger),
    Column("nonfinite_golden", BigInteger),
    Column("nonfinite_disagree", BigInteger),
    Column("worst", Text),  # JSON [index, target, golden]
    Column("histograms", LargeBinary),  # codec.pack_histograms
)

flow = Table(
    "flow",
    metadata,
    Column("id", Key, primary_key=True, autoincrement=False),  # the unit's first key
    Column("makers", LargeBinary, nullable=False),  # codec.pack_makers of all its item pairs
    Column("spread", LargeBinary),  # codec.pack_spread; null: nothing differs, or stored before it was kept
)

distance = Table(
    "distance",
    metadata,
    Column("id", Key, primary_key=True, autoincrement=False),  # the item pair's key
    Column("target_bulk", Double),
    Column("target_peak", Double),
    Column("golden_bulk", Double),
    Column("golden_peak", Double),
    Column("golden_score", Double),
    Column("measure", SmallInteger, nullable=False),
    Column("ratio", Double),
    Column("inverse", Double),
)

collective = Table(
    "collective",
    metadata,
    Column("id", Key, primary_key=True, autoincrement=False),  # below the first unit of its step
    Column("api", Text, nullable=False),
    Column("call", Integer, nullable=False),
    Column("ranks", Text, nullable=False),  # JSON list, of the group
    Column("missing", Text, nullable=False),  # JSON list of those that have no part
    Column("verdict", SmallInteger, nullable=False),  # worst of its parts
    Column("faulty", SmallInteger, nullable=False),
    Column("first_part", BigInteger, nullable=False),  # key of its first part, the others follow
    Column("part_count", Integer, nullable=False),
)

collective_part = Table(
    "collective_part",
    metadata,
    Column("id", Key, primary_key=True, autoincrement=False),  # below the first unit of its step
    Column("unit", BigInteger, nullable=False),  # of its rank
    Column("node", Integer, nullable=False),  # node pair number there
    Column("gave", SmallInteger),  # verdict; null: it gives nothing
    Column("gave_severity", Double, nullable=False),
    Column("took", SmallInteger),  # verdict; null: it takes nothing
    Column("took_severity", Double, nullable=False),
    Index(None, "unit", "node"),
)

item_error = Table(
    "item_error",
    metadata,
    Column("id", Key, primary_key=True, autoincrement=False),
    Column("message", Text, nullable=False),
    Column("said", Text),  # the phrases behind the message (codec.phrases_to_json)
)

job = Table(
    "job",
    metadata,
    Column("serial", Key, primary_key=True, autoincrement=True),
    Column("id", String(32), nullable=False, unique=True),
    Column("kind", String(16), nullable=False),
    Column("subject", String(32), nullable=False),
    Column("status", String(16), nullable=False, index=True),
    Column("payload", Text, nullable=False),
    Column("progress", Double, nullable=False),
    Column("message", Text, nullable=False),
    Column("eta", Double),
    Column("error", Text),
    Column("cancel", SmallInteger, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("created", Double, nullable=False),
    Column("started", Double),
    Column("finished", Double),
    Column("said", Text),
)

task = Table(
    "task",
    metadata,
    Column("job", String(32), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("progress", Double, nullable=False),
    Column("message", Text, nullable=False),
    Column("said", Text),
)

precheck = Table(
    "precheck",
    metadata,
    Column(
        "id", Key, primary_key=True, autoincrement=False
    ),  # the entry's key, so that it goes and is copied with its rank
    Column("word", SmallInteger, nullable=False),  # place in domain.precheck.WORDS
    Column("facts", Text, nullable=False),  # JSON of domain.precheck.Alone
    Index(None, "word", "id"),
)

note = Table(
    "note",
    metadata,
    Column("id", Key, primary_key=True, autoincrement=True),
    Column(
        "pair", LargeBinary, nullable=False
    ),  # digest of what both dumps are, see `comparisons.catalogue.dumps_digest`
    Column("node", Text, nullable=False),  # as `node_pair.name`
    Column("standing", String(16), nullable=False),
    Column("text", Text, nullable=False),
    Column("changed", Double, nullable=False),
    UniqueConstraint("pair", "node"),
)

watch = Table(
    "watch",
    metadata,
    Column("serial", Key, primary_key=True, autoincrement=True),
    Column("id", String(32), nullable=False, unique=True),
    Column("dump", BigInteger, nullable=False, unique=True),  # dump.serial
    Column("partner", BigInteger),  # dump.serial of the other side
    Column("side", String(8), nullable=False),  # of the watched dump: target or golden
    Column("options", Text, nullable=False),  # of its comparison
    Column("comparison", BigInteger),  # comparison.serial
    Column("compared", Text),  # digest of the ranks that it compared last
    Column("begun", Text, nullable=False),  # JSON {"steps", "ranks"}: what the dump had when the watch began
    Column("seen", Text, nullable=False),  # JSON of domain.watching.Seen
    Column("created", Double, nullable=False),
    Index(None, "partner"),
)

checkpoint_diff = Table(
    "checkpoint_diff",
    metadata,
    Column("serial", Key, primary_key=True, autoincrement=True),
    Column("id", String(32), nullable=False, unique=True),
    Column("name", Text, nullable=False),
    Column("target", Text, nullable=False),  # paths
    Column("golden", Text, nullable=False),
    Column("renames", Text, nullable=False),  # JSON list
    Column("status", String(16), nullable=False),
    Column("job", String(32)),
    Column("error", Text),
    Column("answer", Text),  # JSON of index.checkpoints.Answer, once there is one
    Column("created", Double, nullable=False),
)

checkpoint_tensor = Table(
    "checkpoint_tensor",
    metadata,
    Column("diff", BigInteger, primary_key=True, autoincrement=False),  # checkpoint_diff.serial
    Column("number", Integer, primary_key=True, autoincrement=False),  # place, worst first
    Column("state", SmallInteger, nullable=False),  # place in domain.checkpoints.differences.STATES
    Column("name", Text, nullable=False),
    Column("golden", Text, nullable=False),
    Column("share", Double, nullable=False),  # of elements that differ; -1 where nothing was compared
    Column("largest", Double, nullable=False),  # absolute difference; -1 where nothing was compared
    Column("facts", Text, nullable=False),  # JSON as export.checkpoint_diff.tensor_document makes it
    Index(None, "diff", "state", "number"),
)

monitor = Table(
    "monitor",
    metadata,
    Column("serial", Key, primary_key=True, autoincrement=True),
    Column("id", String(32), nullable=False, unique=True),
    Column("name", Text, nullable=False),
    Column("path", Text, nullable=False),
    Column("other", Text),  # path of the run that it is compared with
    Column("status", String(16), nullable=False),  # of the last examination
    Column("job", String(32)),
    Column("error", Text),
    Column("answer", Text),  # JSON of the last examination that ended, in short (pipeline.server.monitor_job)
    Column("findings", Text),  # JSON of all that it found
    Column("created", Double, nullable=False),
)

webhook = Table(
    "webhook",
    metadata,
    Column("serial", Key, primary_key=True, autoincrement=True),
    Column("id", String(32), nullable=False, unique=True),
    Column("url", Text, nullable=False),
    Column("secret", Text, nullable=False),
    Column("home", Text, nullable=False),  # address of the page, as whoever made it reached the server
    Column("kinds", Text, nullable=False),  # JSON list of kinds of jobs
    Column("states", Text, nullable=False),  # JSON list of the ends of jobs
    Column("subject", String(32)),  # of the jobs; null: any
    Column("created", Double, nullable=False),
)

delivery = Table(
    "delivery",
    metadata,
    Column("serial", Key, primary_key=True, autoincrement=True),
    Column("id", String(32), nullable=False, unique=True),
    Column("webhook", BigInteger, nullable=False),  # webhook.serial
    Column("event", String(32), nullable=False),  # kind.state
    Column("job", String(32), nullable=False),
    Column("status", String(16), nullable=False),
    Column("body", Text),  # null until the first try
    Column("tries", Integer, nullable=False),
    Column("due", Double),  # time of the next try; null when it is over
    Column("reply_status", Integer),  # of HTTP, of the last try
    Column("error", Text),
    Column("said", Text),  # the phrases behind the error (codec.phrases_to_json)
    Column("created", Double, nullable=False),
    Column("finished", Double),
    Index(None, "webhook", "serial"),
    Index(None, "due"),
)

RANK_ROWS: Final = (entry, item, item_block, producers, precheck)
"""Tables whose keys begin with a rank_dump's id."""

UNIT_ROWS: Final = (node_pair, place, item_pair, tensor_fact, distance, item_error, flow, collective, collective_part)
"""Tables whose keys begin with a unit's id."""
