"""Section 3: mixed precision. Overflow, and what the loss scale shows of it."""
