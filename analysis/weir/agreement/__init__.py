"""Studies that were answered live and in virtual time: how far both agree, and where the difference comes from."""
