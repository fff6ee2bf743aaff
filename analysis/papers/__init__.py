"""Papers whose claims are tested: a folder for each, found by its `paper.toml` (`weir.paper_registry`)."""
