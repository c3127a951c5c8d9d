# ruff: noqa: F403, F405
"""One module and nothing else. Argument: path."""

import sys

import torch
from net import Net, train
from ptdbg_ascend import *

seed_all()
net = Net()
set_dump_path(sys.argv[1])
register_hook(net, acc_cmp_dump)
set_dump_switch("ON")
module_dump(net.first, "first_linear")
train(net, torch.rand(4, 8))
module_dump_end()
set_dump_switch("OFF")
