"""Jobs whose steps vary, in plain PyTorch: each by its name a function that trains for so many steps. Small in bytes, as
the nets of training_models.py that they train; what is allocated when is as in their large kin.
"""
import copy
import random

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import stateless
from training_models import Residual, Transformer, classifier, convolution

WORDS = 200


def adam(parameters):
    return torch.optim.AdamW(parameters, lr=1e-3)


def small_resnet(width=8):
    return classifier([convolution(3, width, 3, 2), Residual(width, width, 1), Residual(4 * width, 2 * width, 2),
                       Residual(8 * width, 2 * width, 1)], 8 * width)


def language_model(layers=4):
    return Transformer(WORDS, 64, layers, 4, 64)


def sentences(batch, length):
    return torch.randint(0, WORDS, (batch, length))


def labels(batch):
    return torch.randint(0, 10, (batch,))


def update(optimizer, loss):
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()


def likelihood(model, tokens):
    return F.cross_entropy(model(tokens).reshape(-1, WORDS), tokens.reshape(-1))


def learn_sentences(steps, shape_of_step):
    model = language_model()
    optimizer = adam(model.parameters())
    for step in range(steps):
        update(optimizer, likelihood(model, sentences(*shape_of_step(step))))


def follow(average, model, share):
    with torch.no_grad():
        for mean, now in zip(average.parameters(), model.parameters()):
            mean.mul_(1 - share).add_(now, alpha=share)


def adversaries(steps):
    """A generator and a discriminator, in turn."""
    make = nn.Sequential(nn.Linear(32, 512), nn.ReLU(), nn.Linear(512, 3 * 16 * 16), nn.Tanh())
    judge = small_resnet()
    of_make, of_judge = adam(make.parameters()), adam(judge.parameters())
    for _ in range(steps):
        real, made = torch.randn(8, 3, 16, 16), make(torch.randn(8, 32)).view(8, 3, 16, 16)
        update(of_judge, F.softplus(-judge(real)).mean() + F.softplus(judge(made.detach())).mean())
        update(of_make, F.softplus(-judge(made)).mean())


def generate(model, tokens, count):
    """The next `count` words, with the keys and values of those before them kept."""
    caches = [None] * len(model.layers)
    for i in range(count):
        x = model.words(tokens[:, -1:] if i else tokens)
        for number, layer in enumerate(model.layers):
            q, k, v = layer.project(layer.norms[0](x)).chunk(3, -1)
            if caches[number] is not None:
                k, v = (torch.cat(pair, 1) for pair in zip(caches[number], (k, v)))
            caches[number] = (k, v)
            x = x + layer.mix((q @ k.transpose(1, 2) / 8).softmax(-1) @ v)
            x = x + layer.wide(layer.norms[1](x))
        tokens = torch.cat([tokens, model.out(model.norm(x))[:, -1].argmax(-1, keepdim=True)], 1)
    return tokens


def feedback(steps, count=lambda: 20):
    """Answers are generated, and then learnt from twice, near to what the model was at first."""
    model = language_model(3)
    first, optimizer = copy.deepcopy(model), adam(model.parameters())
    for _ in range(steps):
        with torch.no_grad():
            tokens = generate(model, sentences(4, 4), count())
            before = first(tokens).log_softmax(-1)
        for _ in range(2):
            output = model(tokens)
            far = F.kl_div(output.log_softmax(-1), before, log_target=True)
            update(optimizer, F.cross_entropy(output.reshape(-1, WORDS), tokens.reshape(-1)) + far)


def detection(steps):
    """Images of any size, with any number of things on them."""
    model = small_resnet()
    optimizer = adam(model.parameters())
    for _ in range(steps):
        features = model[:4](torch.randn(2, 3, 32 * random.randint(1, 3), 32 * random.randint(1, 3)))
        at = torch.randint(0, features.shape[2], (random.randint(1, 40),))
        update(optimizer, model[6](features[0, :, at, at % features.shape[3]].t()).logsumexp(-1).mean())


def graphs(steps):
    """Parts of a graph, each of other nodes and edges."""
    layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(4))
    optimizer = adam(layers.parameters())
    for _ in range(steps):
        nodes, edges = random.randint(200, 400), random.randint(1000, 3000)
        x, source, target = torch.randn(nodes, 64), *torch.randint(0, nodes, (2, edges))
        for layer in layers:
            x = F.relu(torch.zeros(nodes, 64).index_add(0, target, layer(x)[source])) + x
        update(optimizer, x.pow(2).mean())


def diffusion(steps):
    """Noise is learnt; an average of the weights now and then; in every fifth step a sample, in ten passes."""
    model = nn.Sequential(convolution(3, 16, 3), Residual(16, 8, 1), Residual(32, 8, 1), convolution(32, 3, 3))
    average, optimizer = copy.deepcopy(model), adam(model.parameters())
    for step in range(steps):
        image, share = torch.randn(4, 3, 24, 24), torch.rand(4, 1, 1, 1)
        noise = torch.randn_like(image)
        update(optimizer, F.mse_loss(model(share * image + (1 - share) * noise), noise))
        if step % 10 == 9:
            follow(average, model, 0.1)
        if step % 5 == 4:
            with torch.no_grad():
                sample = torch.randn(2, 3, 24, 24)
                for _ in range(10):
                    sample = sample - 0.1 * average(sample)


def experts(steps):
    """Each token goes to one of four."""
    words, out = nn.Embedding(WORDS, 64), nn.Linear(64, WORDS)
    gates = nn.ModuleList(nn.Linear(64, 4) for _ in range(3))
    expert = lambda: nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64))
    layers = nn.ModuleList(nn.ModuleList(expert() for _ in range(4)) for _ in gates)
    optimizer = adam(nn.ModuleList([words, gates, layers, out]).parameters())
    for _ in range(steps):
        tokens = sentences(8, 32)
        x = words(tokens).view(-1, 64)
        for gate, layer in zip(gates, layers):
            weight, chosen = gate(x).softmax(-1).max(-1)
            y = torch.zeros_like(x)
            for number, one in enumerate(layer):
                its = (chosen == number).nonzero().squeeze(1)
                y = y.index_add(0, its, one(x[its]) * weight[its, None])
            x = x + y
        update(optimizer, F.cross_entropy(out(x), tokens.view(-1)))


def contrast(steps):
    """Against a queue of what an average of the model has made of earlier images."""
    model, queue = small_resnet(), torch.randn(512, 10)
    average, optimizer = copy.deepcopy(model), adam(model.parameters())
    for _ in range(steps):
        images = torch.randn(8, 3, 32, 32)
        query = model(images)
        follow(average, model, 0.01)
        with torch.no_grad():
            key = average(images.flip(3))
        likeness = torch.cat([(query * key).sum(1, keepdim=True), query @ queue.t()], 1)
        update(optimizer, F.cross_entropy(likeness, torch.zeros(8, dtype=torch.long)))
        queue = torch.cat([queue[8:], key])


def larger_images(steps):
    """For good, twice."""
    model = small_resnet()
    optimizer = adam(model.parameters())
    for step in range(steps):
        side = (24, 32, 48)[step * 3 // steps]
        update(optimizer, F.cross_entropy(model(torch.randn(8, 3, side, side)), labels(8)))


def accumulation(steps):
    """Four batches a step, each of another length."""
    model = language_model()
    optimizer = adam(model.parameters())
    for _ in range(steps):
        for _ in range(4):
            likelihood(model, sentences(4, random.randint(12, 60))).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def low_rank(steps):
    """The model stays as it is, what is added to it is learnt."""
    model = language_model().requires_grad_(False)
    pairs = nn.ParameterList(nn.Parameter(torch.randn(64, 4) * 0.01) for _ in range(2 * len(model.layers)))
    optimizer = adam(pairs.parameters())
    for _ in range(steps):
        tokens = sentences(8, 32)
        x = model.words(tokens)
        for number, layer in enumerate(model.layers):
            x = layer(x) + (x @ pairs[2 * number]) @ pairs[2 * number + 1].t()
        update(optimizer, F.cross_entropy(model.out(model.norm(x)).view(-1, WORDS), tokens.view(-1)))


def second_order(steps):
    """L-BFGS, with six evaluations a step and a history of five."""
    model = small_resnet(4)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=6, history_size=5)
    images, wanted = torch.randn(8, 3, 24, 24), labels(8)

    def loss():
        optimizer.zero_grad(set_to_none=True)
        value = F.cross_entropy(model(images), wanted)
        value.backward()
        return value

    for _ in range(steps):
        optimizer.step(loss)


def saves(steps):
    """Weights and state are copied in every eighth step."""
    model = language_model()
    optimizer = adam(model.parameters())
    for step in range(steps):
        update(optimizer, likelihood(model, sentences(8, 32)))
        if step % 8 == 7:
            saved = [value.clone() for value in model.state_dict().values()], copy.deepcopy(optimizer.state_dict())
            del saved


def evaluation(steps):
    """In every sixth step, on other shapes; gradients are clipped."""
    model = language_model()
    optimizer = adam(model.parameters())
    for step in range(steps):
        loss = likelihood(model, sentences(8, 32))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 6 == 5:
            with torch.no_grad():
                torch.cat([model(sentences(16, 48)).argmax(-1) for _ in range(3)])


def teacher(steps):
    """A larger model's answers are learnt."""
    large, model = Transformer(WORDS, 128, 6, 4, 64), language_model(3)
    optimizer = adam(model.parameters())
    for _ in range(steps):
        tokens = sentences(8, 32)
        with torch.no_grad():
            wanted = large(tokens).log_softmax(-1)
        update(optimizer, F.kl_div(model(tokens).log_softmax(-1), wanted, log_target=True))


def tasks(steps):
    """Three tasks a step; two gradient steps for each are part of what is learnt."""
    model = small_resnet(4)
    optimizer = adam(model.parameters())
    for _ in range(steps):
        total = 0
        for _ in range(3):
            weights = dict(model.named_parameters())
            images, wanted = torch.randn(4, 3, 24, 24), labels(4)
            loss = lambda: F.cross_entropy(stateless.functional_call(model, weights, (images,)), wanted)
            for _ in range(2):
                gradients = torch.autograd.grad(loss(), list(weights.values()), create_graph=True)
                weights = {name: w - 0.01 * g for (name, w), g in zip(weights.items(), gradients)}
            total = total + loss()
        update(optimizer, total)


def two_models(steps, turn=lambda: 3):
    """Each has its turn, while the gradients of the other's last step stay."""
    nets = [(language_model(), lambda model: likelihood(model, sentences(8, 32))),
            (small_resnet(), lambda model: F.cross_entropy(model(torch.randn(8, 3, 48, 48)), labels(8)))]
    trained = [(model, loss, adam(model.parameters())) for model, loss in nets]
    for _ in range(steps // 2):
        for model, loss, optimizer in trained:
            for _ in range(turn()):
                update(optimizer, loss(model))


SHAPES = ((8, 32), (4, 48), (16, 16))
JOBS = {
    "accumulation": accumulation,
    "adversaries": adversaries,
    "buckets": lambda steps: learn_sentences(steps, lambda step: (8, 16 + 16 * (step // 6 % 3))),
    "contrast": contrast,
    "detection": detection,
    "diffusion": diffusion,
    "evaluation": evaluation,
    "experts": experts,
    "feedback": feedback,
    "feedback_at_will": lambda steps: feedback(steps, lambda: random.randint(8, 28)),
    "graphs": graphs,
    "larger_images": larger_images,
    "low_rank": low_rank,
    "saves": saves,
    "second_order": second_order,
    "shapes": lambda steps: learn_sentences(steps, lambda step: SHAPES[step % 3]),
    "shapes_at_will": lambda steps: learn_sentences(steps, lambda step: random.choice(SHAPES)),
    "tasks": tasks,
    "teacher": teacher,
    "two_models": two_models,
    "two_models_at_will": lambda steps: two_models(steps, lambda: random.randint(1, 6)),
}
