"""All papers' schedulers on one disk under one load: who meets deadlines, at what cost, up to which load."""
