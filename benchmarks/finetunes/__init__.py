"""Small real fine-tunes of models trained first: made, labelled from their full curves, and rated."""
