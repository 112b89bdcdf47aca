"""A pass that is imported and not run."""

from torch._not_run import any_name as __getattr__
