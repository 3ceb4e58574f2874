"""The criteria of the disclosure test in words."""

from typing import Final

WORDS: Final = {
    "singling_out": "singling out",
    "linkability": "linkability",
    "inference_exact": "inference by claims",
    "inference_near": "inference by the nearest record",
    "near_copies": "near copies",
    "rare_text": "rare texts",
}
