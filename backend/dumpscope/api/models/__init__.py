"""Wire models: what travels, as OpenAPI describes it."""
