"""A few steps of training on the CPU in JAX; prints every loss to the last bit."""

import jax
import jax.numpy as jnp

keys = jax.random.split(jax.random.key(7), 4)
weights = [0.05 * jax.random.normal(keys[0], (256, 512)), 0.05 * jax.random.normal(keys[1], (512, 10))]
inputs = jax.random.normal(keys[2], (64, 256))
labels = jax.random.randint(keys[3], (64,), 0, 10)


def loss_of(weights):
    logits = jax.nn.relu(inputs @ weights[0]) @ weights[1]
    return -jnp.mean(jax.nn.log_softmax(logits)[jnp.arange(64), labels])


@jax.jit
def step(weights):
    loss, gradients = jax.value_and_grad(loss_of)(weights)
    return loss, [weight - 0.1 * gradient for weight, gradient in zip(weights, gradients)]


for _ in range(8):
    loss, weights = step(weights)
    print(float(loss).hex())
print([str(device) for device in jax.devices()])
