"""PyTorch's side of bench/peers.py: reads "case threads ms arguments…" lines, answers each with the best whole call in seconds.

  linear M K N dtype                x [M, K] times w [N, K]
  attention S D H causal dtype      scaled_dot_product_attention on [1, H, S, D]
  model NAME S eager|compile        minilm, llama_layer or gpt2 with random weights, batch 1, float32"""
import sys
import time

import torch

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}


def best_of(call, ms):
    call()
    best, end = float("inf"), time.perf_counter() + ms * 1e-3
    while time.perf_counter() < end:
        begin = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - begin)
    return best


def linear(m, k, n, dtype):
    x, w = (torch.rand(int(rows), int(k), dtype=DTYPES[dtype]) - 0.5 for rows in (m, n))
    return lambda: torch.nn.functional.linear(x, w)


def attention(s, d, h, causal, dtype):
    q, k, v = (torch.randn(1, int(h), int(s), int(d), dtype=DTYPES[dtype]) for _ in range(3))
    return lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal == "causal")


def make_minilm(s):
    from transformers import BertConfig, BertModel

    config = BertConfig(vocab_size=30522, hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536, attn_implementation="sdpa")
    return BertModel(config, add_pooling_layer=False), {"input_ids": torch.randint(0, 30522, (1, s))}


def make_llama_layer(s):
    from transformers import LlamaConfig, LlamaModel

    config = LlamaConfig(vocab_size=8, hidden_size=1024, num_hidden_layers=1, num_attention_heads=16, num_key_value_heads=4, intermediate_size=2816, max_position_embeddings=s,
                         attn_implementation="sdpa", use_cache=False)
    return LlamaModel(config), {"inputs_embeds": torch.randn(1, s, 1024)}


def make_gpt2(s):
    from transformers import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(GPT2Config(attn_implementation="sdpa", use_cache=False)), {"input_ids": torch.randint(0, 50257, (1, s))}


MODELS = {"minilm": make_minilm, "llama_layer": make_llama_layer, "gpt2": make_gpt2}
kept = {}


def model(name, s, mode):
    if (name, s, mode) not in kept:
        module, inputs = MODELS[name](int(s))
        module = module.eval()
        kept[name, s, mode] = torch.compile(module) if mode == "compile" else module, inputs
    module, inputs = kept[name, s, mode]
    return lambda: module(**inputs)


CASES = {"linear": linear, "attention": attention, "model": model}


def main():
    torch.set_flush_denormal(True)
    for line in sys.stdin:
        case, threads, ms, *arguments = line.split()
        torch.set_num_threads(int(threads))
        with torch.inference_mode():
            print(best_of(CASES[case](*arguments), float(ms)), flush=True)


if __name__ == "__main__":
    main()
