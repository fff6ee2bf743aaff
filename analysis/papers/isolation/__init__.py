"""The isolation benchmark: what each mechanism does for and to those who share a disk."""
