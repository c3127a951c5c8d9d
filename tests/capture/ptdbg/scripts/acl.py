# ruff: noqa: F403, F405
"""The device's own dump of one function. Argument: path of a dump.json."""

import sys

import torch
from net import Net, train
from ptdbg_ascend import *

seed_all()
net = Net()
set_dump_path("./acl_dump")
register_hook(net, acc_cmp_dump, dump_mode="acl", dump_config=sys.argv[1])
set_dump_switch("ON", mode="acl", scope=["Functional.linear.1.forward"])
train(net, torch.rand(4, 8))
set_dump_switch("OFF")
print("trained")
