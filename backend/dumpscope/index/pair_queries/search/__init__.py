"""What a search asks of the tables: terms as clauses over node pairs."""
