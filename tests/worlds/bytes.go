package worlds

// Table is where the bytes of transactions come from: never zero, and different wherever
// one looks.
var Table = func() []byte {
	b := make([]byte, 1<<19)
	x := uint32(1)
	for i := range b {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		b[i] = byte(x>>11)%255 + 1
	}
	return b
}()
