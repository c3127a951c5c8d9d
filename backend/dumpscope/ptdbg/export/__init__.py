"""Result tables in the form of ptdbg_ascend."""
