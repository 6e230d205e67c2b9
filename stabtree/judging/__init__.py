"""How runs are judged, and what became of each: what a project and a command line say, in one place."""
