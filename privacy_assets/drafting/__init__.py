"""A contract drafted from a table: types, formats, ranges and proposed roles, which a person decides."""
