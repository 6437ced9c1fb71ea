"""Shows profiles: as a terminal table, as JSON. Renderers draw no conclusions; they choose and format."""
