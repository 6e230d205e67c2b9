"""What a configuration alone decides, before a run: settings against bounds, against each other, against the trees."""
