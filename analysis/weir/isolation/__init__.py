"""The isolation benchmark: what each mechanism of the kernel, and each policy, does for and to those who share a disk."""
