"""The reference: pages on commands, schemas, tables and types, made of the code that they tell of."""
