# ruff: noqa: F403, F405
"""PrecisionDebugger with a model: its modules instead of functions. Argument: path."""

import sys

import torch
from net import Net, train
from ptdbg_ascend import *

seed_all()
net = Net()
debugger = PrecisionDebugger(dump_path=sys.argv[1], hook_name="dump", model=net)
debugger.configure_hook(mode="all", summary_mode="md5")
PrecisionDebugger.start()
train(net, torch.rand(4, 8))
PrecisionDebugger.stop()
PrecisionDebugger.step()
