"""Time and links between facts: the one place that decides status, supersession and slots."""
