"""Machine code for the common pairs of dtypes. Importing these modules may import numba; `loader` decides when."""
