# ruff: noqa: F403, F405
"""The overflow check: training ends at the second overflow. Argument: path."""

import sys

import torch
from net import Net
from ptdbg_ascend import *

seed_all()
net = Net()
set_dump_path(sys.argv[1])
register_hook(net, overflow_check, overflow_nums=2)
set_overflow_check_switch("ON")
for _ in range(5):
    torch.mul(net(torch.rand(4, 8)), 1e38) * 1e30
print("never reached")
