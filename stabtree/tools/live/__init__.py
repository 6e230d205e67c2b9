"""A run while it grows: its log is followed, judged at points, and each finding reported once it holds."""
