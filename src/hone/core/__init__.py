"""Values and Protocols, standard library only: what everything else, and every plugin, is written against."""
