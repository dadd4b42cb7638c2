"""SmolLM2-135M-Instruct for the oracles: the GGUF file as a float32 transformers model.

The weights are dequantised by the gguf package, rows of q and k put back into the order of Hugging
Face. The tokenizer is built with the tokenizers library from the file's own vocabulary and merges,
digits split one by one before the GPT-2 pattern (transformers' own conversion leaves that out).
"""

import gguf
import jinja2
import numpy as np
import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM

NAMES = {
    "token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head",
    "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
CONTROL = 3  # token_type of special tokens


class SmolLM2:
    def __init__(self, path, with_model=True):
        self.reader = gguf.GGUFReader(path)
        self.tokenizer = self._tokenizer()
        self.template = jinja2.Environment(trim_blocks=True, lstrip_blocks=True).from_string(
            self._field("tokenizer.chat_template"))
        self.eos = self._field("tokenizer.ggml.eos_token_id")
        self.model = self._model() if with_model else None

    def _field(self, key, default=None):
        field = self.reader.get_field(key)
        return default if field is None else field.contents()

    def _tokenizer(self):
        tokens = self._field("tokenizer.ggml.tokens")
        merges = [tuple(m.split(" ")) for m in self._field("tokenizer.ggml.merges")]
        types = self._field("tokenizer.ggml.token_type")
        tokenizer = Tokenizer(models.BPE({t: i for i, t in enumerate(tokens)}, merges))
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ])
        tokenizer.decoder = decoders.ByteLevel()
        tokenizer.add_special_tokens([
            AddedToken(t, normalized=False) for t, kind in zip(tokens, types) if kind == CONTROL])
        return tokenizer

    def _model(self):
        def key(name):
            return self._field(f"llama.{name}")

        n_heads, n_kv_heads = key("attention.head_count"), key("attention.head_count_kv")
        config = LlamaConfig(
            hidden_size=key("embedding_length"), intermediate_size=key("feed_forward_length"),
            num_hidden_layers=key("block_count"), num_attention_heads=n_heads,
            num_key_value_heads=n_kv_heads, vocab_size=key("vocab_size"),
            max_position_embeddings=key("context_length"), tie_word_embeddings=True,
            rms_norm_eps=key("attention.layer_norm_rms_epsilon"),
            rope_parameters={"rope_type": "default", "rope_theta": key("rope.freq_base")},
        )
        config._attn_implementation = "eager"
        weights = {}
        for tensor in self.reader.tensors:
            values = gguf.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
            values = values.reshape([int(n) for n in reversed(tensor.shape)])
            parts = tensor.name.split(".")
            name = ".".join([f"model.layers.{parts[1]}" if parts[0] == "blk" else NAMES[parts[0]]]
                            + ([NAMES[parts[2]]] if parts[0] == "blk" else []) + [parts[-1]])
            heads = {"attn_q": n_heads, "attn_k": n_kv_heads}.get(parts[-2])
            if heads:
                half = values.shape[0] // heads // 2
                values = values.reshape(heads, half, 2, -1).swapaxes(1, 2).reshape(values.shape)
            weights[name] = torch.from_numpy(np.ascontiguousarray(values))
        with torch.device("meta"):
            model = LlamaForCausalLM(config)
        model = model.to_empty(device="cpu")
        missing, unexpected = model.load_state_dict(weights, strict=False)
        assert set(missing) <= {"lm_head.weight"} and not unexpected, (missing, unexpected)
        model.tie_weights()
        # Buffers came from the meta device: make the RoPE frequencies anew, in float32.
        rotary = type(model.model.rotary_emb)(config)
        model.model.rotary_emb = rotary
        assert rotary.inv_freq.dtype == torch.float32
        return model.eval()

    def encode(self, text):
        """Ids of a text; special tokens in it are read as such."""
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def decode(self, ids):
        return self.tokenizer.decode(ids, skip_special_tokens=False)

    def chat(self, prompt):
        """The prompt as one user message, rendered by the model's template, with the answer open."""
        messages = prompt if isinstance(prompt, list) else [{"role": "user", "content": prompt}]
        return self.template.render(messages=messages, add_generation_prompt=True,
                                    bos_token="<|im_start|>", eos_token="<|im_end|>")

    @torch.no_grad()
    def greedy(self, ids, n, stop_at_eos=True):
        """Ids that follow, and the gap between the two best logits at each."""
        out, gaps, cache, step = [], [], None, torch.tensor([ids])
        for _ in range(n):
            result = self.model(step, cache=cache, use_cache=True)
            cache, row = result.cache, result.logits[0, -1]
            top = torch.topk(row, 2).values
            token = int(torch.nonzero(row == top[0])[0])  # ties go to the lowest id
            out.append(token)
            gaps.append(float(top[0] - top[1]))
            if stop_at_eos and token == self.eos:
                break
            step = torch.tensor([[token]])
        return out, gaps
