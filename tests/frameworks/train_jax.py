"""Steps of training on the CPU in JAX; prints every loss to the last bit.

As functional programs do: each step returns new weights, nothing is donated, and the next step is dispatched before the
last one has ended. So the weights live for longer than a step. On a GPU a step asks for each new weight and once for all in
between: fewer layers, and it would be too short to be taken for an iteration.
"""

import jax
import jax.numpy as jnp

keys = jax.random.split(jax.random.PRNGKey(0), 8)
weights = [0.05 * jax.random.normal(key, (1024, 1024)) for key in keys]
inputs = jax.random.normal(jax.random.PRNGKey(1), (384, 1024))


def loss_of(weights, inputs):
    for weight in weights:
        inputs = jnp.tanh(inputs @ weight)
    return jnp.mean((inputs - 1.0) ** 2)


@jax.jit
def step(weights, inputs):
    loss, gradients = jax.value_and_grad(loss_of)(weights, inputs)
    return [weight - 0.1 * gradient for weight, gradient in zip(weights, gradients)], loss


for _ in range(40):
    weights, loss = step(weights, inputs)
    print(float(loss).hex())
print([str(device) for device in jax.devices()])
