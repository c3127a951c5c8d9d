"""Models of requests and replies, as OpenAPI describes them."""
