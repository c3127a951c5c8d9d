"""A dump format: a folder of `.npy` files, one for each output of a layer, named by order and layer: `003_layers.0.mlp.npy`."""

import os
import re

from dumpscope.domain.records import Header, RankDump, RankRef, Role, Traits
from dumpscope.errors import Problem, TensorError, UnreadableError
from dumpscope.readers.formats import DumpFormat, Place
from dumpscope.readers.records.leaves import Leaves
from dumpscope.readers.records.node_table import NodeTable, build_rank
from dumpscope.readers.tensors import npy_file
from dumpscope_format.naming import module_name

_FILE = re.compile(r"([0-9]+)_(.+)\.npy")


class NpyFolder(DumpFormat):
    name = "npy-folder"
    traits = Traits(all_arguments=False)

    def find_rank(self, place: Place) -> RankRef | None:
        found = any(map(_FILE.fullmatch, os.listdir(place.folder)))
        return self.rank_at(place, place.folder) if found else None

    def read_rank(self, ref: RankRef, *, follow_stored_path: bool) -> RankDump:
        problems: list[Problem] = []
        table, leaves = (
            NodeTable(),
            Leaves(lambda kind, message: problems.append(Problem(loc="", kind=kind, message=message))),
        )
        try:
            files = sorted(filter(None, map(_FILE.fullmatch, os.listdir(ref.folder))), key=lambda file: int(file[1]))
        except OSError as error:
            raise UnreadableError(f"cannot be listed: {error.strerror}", where=ref.folder) from error
        for file in files:
            try:
                tensor = npy_file.load(os.path.join(ref.folder, file[0]), root=ref.folder)
            except TensorError as error:
                problems.append(Problem(loc=file[0], kind="tensor_unreadable", message=f"{error}."))
                continue
            node = table.add(module_name(file[2], "Layer", "forward", 0))
            record = {"type": "torch.Tensor", "dtype": tensor.dtype, "shape": list(tensor.shape), "data_name": file[0]}
            leaves.walk(node, Role.OUTPUT, "0", record, 0)
        header = Header(
            task="tensor", level="L0", framework="", summary=leaves.summary(), data_dir=ref.folder, layout=self.name
        )
        return build_rank(ref, header, table, leaves, problems)

    def marks_folder(self, name: str) -> bool:
        return _FILE.fullmatch(name) is not None


NPY_FOLDER = NpyFolder()
