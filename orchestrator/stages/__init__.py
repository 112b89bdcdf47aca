"""Stages of the pipeline: pure functions from typed inputs to one typed output."""
