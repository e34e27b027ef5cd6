"""DeepSpeed's side of bench/peers.py: DistributedAttention of two processes over gloo, causal, f32, one thread each, around PyTorch's attention.
   deepspeed_peer.py S H D MS      prints the seconds of the best call, from the first one's start to the last one's end"""
import os
import socket
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

RANKS = 2


def local_attention(q, k, v, *_, **__):
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)


def work(rank, port, s, h, d, ms):
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(RANKS), LOCAL_RANK=str(rank), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    dist.init_process_group("gloo", rank=rank, world_size=RANKS)
    import deepspeed
    from deepspeed.sequence.layer import DistributedAttention

    deepspeed.init_distributed("gloo")
    attention = DistributedAttention(local_attention, dist.group.WORLD, scatter_idx=2, gather_idx=1)
    q, k, v = (torch.randn(1, s // RANKS, h, d) for _ in range(3))
    best, spent = float("inf"), torch.zeros(1)
    with torch.inference_mode():
        attention(q, k, v, 0)
        while spent < ms * 1e-3:
            dist.barrier()
            begin = time.perf_counter()
            attention(q, k, v, 0)
            taken = torch.tensor([time.perf_counter() - begin])
            dist.all_reduce(taken, dist.ReduceOp.MAX)
            spent += taken
            best = min(best, float(taken))
    if rank == 0:
        print(f"seconds {best}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    mp.spawn(work, args=(port, *map(int, sys.argv[1:4]), float(sys.argv[4])), nprocs=RANKS)
