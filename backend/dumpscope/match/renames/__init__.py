"""Names that differ on both sides: rename rules, proposals, mapping files."""
