// Package harm changes datagrams as the memory of a switch may.
package harm

// Do changes a datagram as the memory of a switch may, which puts a right checksum of the
// wire on what it then holds (Stone and Partridge, "When the CRC and TCP checksum disagree", 2000):
// a bit of it, some bits next to each other, a run that becomes zero, words that change places, or
// an end that belongs to something else. below returns a random number from 0 to below n. Some
// damage changes nothing, where all is zero before.
func Do(b []byte, below func(n uint64) uint64) {
	pick := func(n int) int { return int(below(uint64(n))) }
	if len(b) == 0 {
		return
	}
	switch at := pick(len(b)); pick(5) {
	case 0:
		b[at] ^= 1 << pick(8)
	case 1:
		b[at] ^= byte(1 + pick(255))
	case 2:
		clear(b[at : at+1+pick(min(len(b)-at, 128))])
	case 3:
		const word = 4
		if words := len(b) / word; words > 0 {
			x, y := b[pick(words)*word:][:word], b[pick(words)*word:][:word]
			for i := range x {
				x[i], y[i] = y[i], x[i]
			}
		}
	case 4:
		from := pick(len(b))
		copy(b[at:], b[from:])
	}
}
