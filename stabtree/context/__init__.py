"""Who the run is: its task, its trainer, its precision, and the series that says how well it does."""
