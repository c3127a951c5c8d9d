"""How calls are seen: function modes, module hooks, wrapped collectives, aten operators, Triton kernels."""
