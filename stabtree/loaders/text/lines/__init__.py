"""From the text of a line to pairs of name and number: the spellings of all trainers."""
