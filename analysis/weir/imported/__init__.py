"""Import of what other programs measured: their results as runs of a study, and fio's job files as workloads."""
