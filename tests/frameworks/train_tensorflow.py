"""A few steps of training on the CPU in TensorFlow; prints every loss to the last bit."""

import tensorflow as tf

tf.config.experimental.enable_op_determinism()
tf.random.set_seed(7)
weights = [
    tf.Variable(tf.random.normal((256, 512), stddev=0.05)),
    tf.Variable(tf.random.normal((512, 10), stddev=0.05)),
]
inputs = tf.random.normal((64, 256))
labels = tf.random.uniform((64,), maxval=10, dtype=tf.int32)


@tf.function
def step():
    with tf.GradientTape() as tape:
        logits = tf.nn.relu(inputs @ weights[0]) @ weights[1]
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
    for weight, gradient in zip(weights, tape.gradient(loss, weights)):
        weight.assign_sub(0.1 * gradient)
    return loss


for _ in range(8):
    print(float(step()).hex())
print("GPUs", len(tf.config.list_physical_devices("GPU")))
