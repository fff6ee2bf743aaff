"""File systems of a shared data center, after Vaidyanathan, Balaji, Jin and Panda."""
