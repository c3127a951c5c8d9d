"""Joins the ranks of a split run: a plan says which ranks belong together, and they become one dump.

evidence      signs of a split in one rank: modules, layers, weights
rank_layout   makes a plan from the user's sizes or from evidence
plan          which ranks of both sides make each virtual unit; its yaml form
stages        joins pipeline stages into one dump
shards        how an item of a shard belongs to the whole: a part along a dimension, or all of it
join_members  joins shards or replicas into one dump
join_unit     joins all ranks of a unit, side by side
orders        how tensors of the joined dump are made from tensors of its ranks
replicas      finds copies that should be equal and are not
columns       concatenates dumps, and takes parts from them
"""
