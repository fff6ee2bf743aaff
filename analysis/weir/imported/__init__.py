"""Import of what other programs measured, as runs of a study."""
