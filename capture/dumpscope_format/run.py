"""Keys of run.json that a comparison reads, and the default values of settings that it omits."""

from __future__ import annotations

from typing import Final

GROUPS: Final = ("versions", "settings", "numerics", "seeds", "environment")
"""Keys of run.json that hold an object of names and plain values."""

DEVICES: Final = "devices"
"""Key of run.json that holds a list of texts, the processor first."""

UNRECORDED: Final = "unrecorded"
"""Key of run.json: functions that were called and are no nodes, `torch.Tensor.copy_`, with their numbers."""

FROZEN: Final = "frozen"
"""Key of run.json: records of frozen parameters that have no file, and the bytes of these tensors."""

TRIGGER: Final = "trigger"
"""Key of run.json: why this step crossed a limit of a trigger, a list of texts."""

NOTES: Final = "notes"
"""Key of run.json that holds what was recorded in another way than usual: an object of kinds and lists of names."""

COMPILED_NOTE: Final = "compiled"
"""Compiled code that ran eagerly: names of modules and functions."""

FAST_PATH_NOTE: Final = "fast_path"
"""Layers that ran as one fused kernel, so that nothing inside them is recorded: names of modules."""

GRADIENTS_NOTE: Final = "parameters_grad"
"""A backward pass in which no parameter got a gradient: names of the modules with parameters."""

TRACED_NOTE: Final = "traced"
"""What made a graph of the program while nothing was recorded: `torch.jit.trace`."""

TABLE_NOTE: Final = "table"
"""A side that was read from a result table of another tool: name of its file."""

SLICED_NOTE: Final = "sliced"
"""Parts of tensors that were recorded in place of the whole: `dim 0 of size 9: 3 to 7`."""

NOTE_KINDS: Final = (COMPILED_NOTE, FAST_PATH_NOTE, GRADIENTS_NOTE, TRACED_NOTE, TABLE_NOTE, SLICED_NOTE)

SETTINGS: Final[dict[str, str | list[str]]] = {
    "precision": "low", "risk_level": "FOCUS", "backward": "own", "data_mode": ["all"], "scope": [], "list": [],
}  # fmt: skip
"""Settings that change the content of a dump, with their values if `settings` (or a config.json) omits them."""

COMPILED_REGIONS: Final = "compiled_regions"
"""Key of run.json that holds what is known about each recorded region of compiled code, by its node without direction."""

BETWEEN_REGIONS: Final = "calls between compiled regions"
"""Name in `counts` of run.json: calls that ran eagerly inside compiled code and are not recorded."""

COMPILED_GRAPHS: Final = "compiled_graphs"
"""Folder of a step with the texts of the compiled graphs."""
