"""The contract of a table: its columns, their types and their privacy roles."""
