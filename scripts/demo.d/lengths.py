"""The small GPT on text whose length is another in every step, with an evaluation every few steps."""

import torch

import gpt

LAYERS, SHORTEST, STEPS_BETWEEN_EVALUATIONS = 2, 24, 8


def job():
    """The optimizer, and a function that makes the loss on a fresh batch and keeps what it evaluated."""
    model = gpt.Gpt(LAYERS)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    language = gpt.Language()
    steps = 0

    def evaluate():
        model.eval()
        with torch.no_grad():
            values = [model.loss(language.batch(gpt.CONTEXT)) for _ in range(2)]
        model.train()
        return torch.stack(values).mean().item()

    def loss():
        nonlocal steps
        steps += 1
        if steps % STEPS_BETWEEN_EVALUATIONS == 0:
            loss.evaluations.append(evaluate())
        length = int(torch.randint(SHORTEST, gpt.CONTEXT + 1, ()))
        return model.loss(language.batch(length))

    loss.evaluations = []
    return optimizer, loss
