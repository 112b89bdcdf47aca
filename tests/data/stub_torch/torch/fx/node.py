"""Nodes, of which there are none."""

from torch._not_run import any_name

Node, map_arg = any_name("Node"), any_name("map_arg")
