"""A contract drafted from a table: types, formats, ranges and proposed roles, for a person to decide."""
