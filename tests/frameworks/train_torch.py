"""A few steps of training on the CPU in PyTorch; prints every loss to the last bit."""

import torch

torch.manual_seed(7)
torch.use_deterministic_algorithms(True)
model = torch.nn.Sequential(
    torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(16 * 32 * 32, 10)
)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
images, labels = torch.randn(64, 3, 32, 32), torch.randint(0, 10, (64,))
for _ in range(8):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
print("CUDA", torch.cuda.is_available())
