"""The options that commands share: how a log is read, how it is judged, what is printed."""
