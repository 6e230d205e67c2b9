"""From typed words to the call of a command: routes, the table of commands, options, help and completion."""
