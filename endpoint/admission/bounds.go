package admission

import "github.com/dgrdma/dgrdma/internal/strangers"

const (
	// MostAnswers bounds the answers after a batch; other sources ask again. Arbitrary: as many frames as leave at once.
	MostAnswers = 128
	// MostUnproven bounds the learned peers of kinds that have nothing to prove themselves with, unless the configuration
	// bounds peers: all of them, with what they may hold open, stay within what unknown sources may take.
	MostUnproven = 256
	// PerUnproven is how many bytes each of them takes at most, its reserve included.
	PerUnproven = 64 << 10

	// perAnswer is how many bytes an answer that waits takes at most, also if it has to be sealed.
	perAnswer = 1 << 10
)

const _ = uint(strangers.Memory - 2*MostAnswers*perAnswer) // in the clear, and of key exchanges
