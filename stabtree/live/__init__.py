"""A run while it grows: its log is followed, judged at points, and each finding told once it holds."""
