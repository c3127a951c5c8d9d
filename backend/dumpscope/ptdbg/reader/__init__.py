"""Reads dumps of ptdbg_ascend: `.pkl` files of lines, folders of `.npy` files, and what `need_replicate` leaves."""
