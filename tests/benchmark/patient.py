"""``nearkin``, but waiting without end for interrupted runs to save: then only a second Ctrl-C can end it."""

from nearkin.benchmark import local, ray_cluster
from nearkin.cli import entry

if __name__ == "__main__":
    local.PATIENCE = ray_cluster.PATIENCE = 1e6
    entry()
