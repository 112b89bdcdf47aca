"""Programs from public model code: exported, checked, run and compared."""
