package endpoint

// CompletionWord is the word that a peer writes when all data of a transaction has
// arrived: at an address of its memory, little-endian. The zero CompletionWord is none, and
// so is the word of all ones at address all ones, which says on the wire that there is
// none. Not every kind of peer does without: see [ErrNoCompletion].
type CompletionWord struct {
	addr, value uint32 // complements, so that the zero value is what the wire calls none
}

// Word returns the completion word that writes value at addr. Who reads there meanwhile sees all of it or nothing
// where addr is a multiple of four; elsewhere it may see a part.
func Word(addr, value uint32) CompletionWord { return CompletionWord{^addr, ^value} }

// Addr returns where the word is written.
func (c CompletionWord) Addr() uint32 { return ^c.addr }

// Value returns what is written there.
func (c CompletionWord) Value() uint32 { return ^c.value }

// IsZero reports whether nothing is written.
func (c CompletionWord) IsZero() bool { return c == CompletionWord{} }
