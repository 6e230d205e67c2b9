"""Where results go: which outputs are wanted, and files written as a whole or not at all."""
