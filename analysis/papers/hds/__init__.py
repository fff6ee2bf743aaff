"""Wu, Banachowski and Brandt, Hierarchical disk sharing for multimedia systems: its studies again."""
