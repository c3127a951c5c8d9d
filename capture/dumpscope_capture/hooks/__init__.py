"""How calls are noticed: function modes, module hooks, wrapped collectives, aten operators, Triton kernels."""
