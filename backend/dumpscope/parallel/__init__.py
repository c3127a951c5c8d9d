"""Dumps of runs that were split over ranks: which ranks make one whole (plan), and the one dump that they make.

evidence   what a rank tells of the split it is part of
layout     from evidence, or from the user's sizes, to a plan
plan       which ranks of both sides make each virtual unit; its yaml
stages     pipeline stages become one dump
shards     what each item of a shard is to the whole: a part along a dimension, a copy, a part of a sum
joint      shards or replicas become one dump, and orders for the tensors that go with it
replicas   copies that should be equal and are not
columns    dumps laid end to end, and parts taken from them
"""
