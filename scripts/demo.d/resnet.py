"""ResNet-50 for small images: bottleneck blocks in four stages, in plain PyTorch."""

import torch
from torch import nn
from torch.nn import functional as F

STAGES, CLASSES, SIDE, BATCH = (3, 4, 6, 3), 10, 64, 16


def convolution(inputs, outputs, side, stride=1):
    layer = nn.Conv2d(inputs, outputs, side, stride, padding=side // 2, bias=False)
    return nn.Sequential(layer, nn.BatchNorm2d(outputs))


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        self.body = nn.Sequential(
            convolution(inputs, width, 1),
            nn.ReLU(inplace=True),
            convolution(width, width, 3, stride),
            nn.ReLU(inplace=True),
            convolution(width, 4 * width, 1),
        )
        same = inputs == 4 * width and stride == 1
        self.skip = nn.Identity() if same else convolution(inputs, 4 * width, 1, stride)

    def forward(self, x):
        return F.relu(self.body(x) + self.skip(x), inplace=True)


def resnet():
    layers = [convolution(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(2)]
    inputs = 64
    for stage, blocks in enumerate(STAGES):
        width = 64 << stage
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            layers.append(Bottleneck(inputs, width, stride))
            inputs = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, CLASSES))


def job():
    """The model, its optimizer, and a function that makes the loss on a fresh batch."""
    model = resnet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9, weight_decay=1e-4)
    patterns = torch.randn(CLASSES, 3, SIDE, SIDE)  # what an image of each class looks like, under noise

    def loss():
        labels = torch.randint(CLASSES, (BATCH,))
        images = patterns[labels] + torch.randn(BATCH, 3, SIDE, SIDE)
        return F.cross_entropy(model(images), labels)

    return optimizer, loss
