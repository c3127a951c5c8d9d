# ruff: noqa: F403, F405
"""One card: dump.pkl and .npy files of one training step. Arguments: path, and the tag."""

import sys

import torch
from net import Net, train
from ptdbg_ascend import *

seed_all()
net = Net()
set_dump_path(sys.argv[1], dump_tag=sys.argv[2])
register_hook(net, acc_cmp_dump)
set_dump_switch("ON")
train(net, torch.rand(4, 8), scale=float(sys.argv[3]) if len(sys.argv) > 3 else 1.0)
set_dump_switch("OFF")
