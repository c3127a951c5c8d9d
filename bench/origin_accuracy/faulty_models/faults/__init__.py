"""All planted faults."""

from typing import Final

from faulty_models.faults import images, text, training
from faulty_models.planting import Fault

FAULTS: Final[tuple[Fault, ...]] = (*text.FAULTS, *images.FAULTS, *training.FAULTS)
