"""Passes that are imported and not run."""

from torch._not_run import any_name as __getattr__
