"""How the tiny cases of mistral, qwen2, phi3, the falcons and t5 were made: the published code in float64 on weights that float32 holds exactly. By hand, once; tests need none of it.
Needs torch and transformers (5.24). Usage: make_cases.py FOLDER..., each with a config.json"""
import json
import pathlib
import struct
import sys

import torch
import transformers


DTYPES = {torch.int32: "I32", torch.bool: "BOOL"}


def write(path, tensors):
    header, data = {}, b""
    for name, (dtype, shape, raw) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def bytes_of(tensor):
    return tensor.contiguous().numpy().tobytes()


def inputs_of(config):
    """The model's arguments, and under the names of the spec."""
    if not config.is_encoder_decoder:
        tokens = torch.randint(0, config.vocab_size, (2, 13))
        return {"input_ids": tokens}, {"tokens": tokens.int()}
    source, target = torch.randint(0, config.vocab_size, (2, 150)), torch.randint(0, config.vocab_size, (2, 140))
    valid = torch.arange(150) < torch.tensor([[150], [97]])
    return ({"input_ids": source, "attention_mask": valid.long(), "decoder_input_ids": target}, {"source": source.int(), "valid": valid, "target": target.int()})


def main():
    for folder in map(pathlib.Path, sys.argv[1:]):
        torch.manual_seed(7)
        # Not eager: there Falcon adds its ALiBi twice, with the scores and with the mask.
        config = transformers.AutoConfig.from_pretrained(folder)
        model = getattr(transformers, config.architectures[0])._from_config(config, attn_implementation="sdpa").double().eval()
        with torch.no_grad():
            for name, p in model.named_parameters():
                spread = 0.1 if p.dim() == 1 else 0.15 if config.is_encoder_decoder else 0.3  # T5 does not scale its scores
                p.copy_((torch.randn(p.shape) * spread + (1.0 if p.dim() == 1 and "bias" not in name else 0.0)).float().double())
            arguments, inputs = inputs_of(config)
            logits = model(**arguments).logits
        tied = set(model._tied_weights_keys or {}) if config.tie_word_embeddings else set()
        weights = {n: ("F32", p.shape, bytes_of(p.detach().float())) for n, p in sorted(model.named_parameters()) if n not in tied}
        write(folder / "weights.safetensors", weights)
        write(folder / "inputs.safetensors", {n: (DTYPES[x.dtype], x.shape, bytes_of(x)) for n, x in inputs.items()})
        write(folder / "expected.safetensors", {"logits": ("F64", logits.shape, bytes_of(logits))})
        print(folder.name, len(weights), "parameters, largest logit", float(logits.abs().max()))


main()
