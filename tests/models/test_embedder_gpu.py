"""On a CUDA device: half precision, channels last and compiled, as training runs it, against plain float32."""

from __future__ import annotations

import pytest
import torch

from nearkin import models

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", ["resnet18", "bn_inception", "efficientnet_lite0"])
def test_the_fast_way_equals_the_plain_one(name: str, compiled: bool) -> None:
    torch._dynamo.reset()
    model = models.create(name, dim=16, levels="lmh", pooling="gem", frozen_batch_norm=True, seed=0).cuda()
    images = torch.rand(4, 3, 96, 96, generator=torch.Generator().manual_seed(0)).cuda()
    expected = {level: part.detach() for level, part in model(images).items()}
    model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    forward = torch.compile(model, fullgraph=True) if compiled else model
    with torch.autocast("cuda", torch.bfloat16):
        found = forward(images.to(memory_format=torch.channels_last))
    for level, part in expected.items():
        assert torch.nn.functional.cosine_similarity(found[level].float(), part).min() > 0.98
    sum(part.float().square().mean() for part in found.values()).backward()  # type: ignore[union-attr]
    for parameter_name, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.isfinite().all(), parameter_name
    torch._dynamo.reset()


def test_a_seed_leaves_the_device_generator_alone() -> None:
    torch.cuda.manual_seed(3)
    state = torch.cuda.get_rng_state()
    models.create("small", seed=1)
    assert torch.equal(torch.cuda.get_rng_state(), state)
