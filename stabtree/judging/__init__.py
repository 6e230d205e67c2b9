"""How runs are judged and what came of each, from a project's settings and the command line."""
