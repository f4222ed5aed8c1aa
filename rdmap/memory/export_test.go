package memory

// Epoch is what a span of now has.
func (g *Grant) Epoch() uint64 { return g.gate.Load() &^ (shut | inside) }
