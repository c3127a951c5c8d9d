# This file is part of Hypothesis, which may be found at
# https://github.com/HypothesisWorks/hypothesis/
#
# Copyright the Hypothesis Authors.
# Individual contributors are listed in AUTHORS.rst and the git log.
#
# This Source Code Form is subject to the terms of the Mozilla Public License,
# v. 2.0. If a copy of the MPL was not distributed with this file, You can
# obtain one at https://mozilla.org/MPL/2.0/.

from hypothesis.extra.pandas.impl import (
    column,
    columns,
    data_frames,
    indexes,
    range_indexes,
    series,
)

__all__ = ["indexes", "range_indexes", "series", "column", "columns", "data_frames"]
