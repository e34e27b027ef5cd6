"""How the bounds of bf16 in check_model.py were made: the published code in bfloat16, each operation in float32 inside and its result rounded, on the same weights and inputs, against
the expected outputs in float64. By hand, once; tests need none of it. Needs torch and transformers (5.24), safetensors. Usage: make_naive.py FOLDER..."""
import json
import pathlib
import sys

import torch
import transformers
from safetensors.torch import load_file


def model_of(folder, dtype):
    config = transformers.AutoConfig.from_pretrained(folder)
    kind = getattr(transformers, (config.architectures or ["BertModel"])[0])
    model = kind._from_config(config, attn_implementation="eager").double().eval()
    weights = {n: t.double() for n, t in load_file(folder / "weights.safetensors").items()}
    missing, unknown = model.load_state_dict(weights, strict=False)
    tied = set(model._tied_weights_keys or {}) if config.tie_word_embeddings else set()
    assert not unknown and all(n in tied or "position_ids" in n for n in missing), (missing, unknown)
    if tied:
        model.tie_weights()
    return model.to(dtype)


def outputs(model, inputs):
    tokens = inputs["tokens"].long()
    if "valid" not in inputs:
        return {"logits": model(input_ids=tokens).logits}
    y = model(input_ids=tokens, token_type_ids=inputs["types"].long(), attention_mask=inputs["valid"].long())
    w = inputs["valid"].to(y.last_hidden_state.dtype)
    return {"hidden": y.last_hidden_state, "pooled": y.pooler_output, "mean": (y.last_hidden_state * w[..., None]).sum(1) / w.sum(1)[:, None]}


def error(got, want):
    return float((got.double() - want).abs().max() / want.abs().max())


def main():
    for folder in map(pathlib.Path, sys.argv[1:]):
        inputs, expected = (load_file(folder / f"{n}.safetensors") for n in ("inputs", "expected"))
        with torch.no_grad():
            exact, naive = (outputs(model_of(folder, d), inputs) for d in (torch.float64, torch.bfloat16))
        for name, value in exact.items():
            assert error(value, expected[name].double()) < 1e-5, (folder, name, error(value, expected[name].double()))
        print(folder.name, {name: float(f"{error(value, expected[name].double()):.3g}") for name, value in naive.items()})


main()
