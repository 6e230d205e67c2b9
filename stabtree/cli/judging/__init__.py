"""How runs are judged, as the command line and the project's settings say."""
