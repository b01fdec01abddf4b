"""A space: one namespace's facts as derived state over the log; plan, append, apply."""
