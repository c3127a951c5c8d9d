"""Keys of dump.json, stack.json, construct.json and debug.json, as msprobe writes and reads them.

dump.json and debug.json are one object with the keys of `HEADER_KEYS`, in that order, indented by one space; `data` maps
node names to bodies in completion order. They are Python's JSON dialect: NaN, Infinity and -Infinity are bare words.
"""

from __future__ import annotations

from typing import Final

HEADER_KEYS: Final = ("task", "level", "framework", "dump_data_dir", "data")
INDENT: Final = 1
MICRO_STEP_KEY: Final = "megatron_micro_step_number"
"""A key of construct.json that is a number, not a node."""

PSEUDO_PARENTS: Final = ("optimizer", "clip_grad")
"""Parents in construct.json that no call ever is."""

STATISTIC_KEYS: Final = ("Max", "Min", "Mean", "Norm")
TENSOR_KEYS: Final = ("type", "dtype", "shape", *STATISTIC_KEYS, "requires_grad")
"""Keys of every tensor record with statistics, in file order; `md5` and `data_name` may follow."""

NODE_KEYS: Final = ("producers", "containers", "absent", "storage")
"""Keys of ours in the body of a forward node, behind msprobe's; each is an object of texts by item, `input.0`."""

RECOMPUTED_KEY: Final = "recomputed"
"""Key of ours in the body of a forward node, true: activation checkpointing made this call again in the backward pass."""

WRITTEN_KEY: Final = "written"
"""Key of ours in the body of a forward node: records of arguments and buffers that the call wrote into, as they are after it, by
item (`input.1`, `buffers.running_mean`). They are results: their items are `output.written.input.1`."""

MEASURED_KEY: Final = "measured"
"""Key of ours in the record of a tensor that was read from a result table: its distances by metric from the item
of the golden that `golden` names."""

UNINITIALISED_KEY: Final = "uninitialised"
"""Key of ours in the record of a tensor that a call received, true: nothing, or only parts, had been written to this memory."""

TENSOR_TYPE: Final = "torch.Tensor"
ARRAY_TYPE: Final = "numpy.ndarray"
