# ruff: noqa: F403, F405
"""The modes of the switch. Arguments: path, mode, then names for scope or api_list."""

import sys

import torch
from net import Net, train
from ptdbg_ascend import *

path, mode, *listed = sys.argv[1:]
seed_all()
net = Net()
set_dump_path(path)
register_hook(net, acc_cmp_dump)
if mode == "api_list":
    set_dump_switch("ON", mode=mode, api_list=listed)
elif listed:
    set_dump_switch("ON", mode=mode, scope=listed)
else:
    set_dump_switch("ON", mode=mode)
train(net, torch.rand(4, 8))
set_dump_switch("OFF")
