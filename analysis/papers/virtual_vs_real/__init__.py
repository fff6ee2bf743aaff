"""Studies that were answered live and in virtual time: how far both agree, and why not wholly."""
