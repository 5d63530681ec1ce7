"""Reference losses, one function per name of the formula sheet."""

from .angular import angular
from .arcface import arcface
from .binomial_deviance import binomial_deviance
from .circle import circle
from .contrastive import contrastive
from .cosface import cosface
from .histogram import histogram
from .lifted_structure import lifted_structure
from .margin import margin
from .multi_similarity import multi_similarity
from .n_pair import n_pair
from .nra import nra
from .nt_xent import nt_xent
from .proxy_anchor import proxy_anchor
from .proxy_nca import proxy_nca
from .proxy_repulsion import proxy_repulsion
from .quadruplet import quadruplet
from .ranked_list import ranked_list
from .recall_at_k import recall_at_k
from .smooth_ap import smooth_ap
from .soft_triple import soft_triple
from .softmax import softmax
from .spectral_clust import spectral_clust
from .struct_clust import struct_clust
from .sub_center_arcface import sub_center_arcface
from .supcon import supcon
from .triplet import triplet

__all__ = [
    "angular",
    "arcface",
    "binomial_deviance",
    "circle",
    "contrastive",
    "cosface",
    "histogram",
    "lifted_structure",
    "margin",
    "multi_similarity",
    "n_pair",
    "nra",
    "nt_xent",
    "proxy_anchor",
    "proxy_nca",
    "proxy_repulsion",
    "quadruplet",
    "ranked_list",
    "recall_at_k",
    "smooth_ap",
    "soft_triple",
    "softmax",
    "spectral_clust",
    "struct_clust",
    "sub_center_arcface",
    "supcon",
    "triplet",
]
