"""The doors of trainers and loggers that take a dict and a step: each hands it to a Sink, imported only on use."""
