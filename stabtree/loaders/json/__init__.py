"""JSON: lines, documents, manifests and the state of trainers."""
