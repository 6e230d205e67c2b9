"""Scripts that measure: speed, accuracy on a labelled benchmark, and the competitors on the same runs."""
