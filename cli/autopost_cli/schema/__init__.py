"""`autopost migrate` and `autopost seed`: the schema files and how they are applied."""
