"""How runs are judged, as the command line says."""
