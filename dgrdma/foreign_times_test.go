package dgrdma

import "time"

// Times and ids after which peers without sessions are judged in another way, as package foreign has them.
const (
	heldBack    = time.Second
	copyDelay   = 100 * time.Millisecond
	doubtFor    = 100 * time.Millisecond
	missedAfter = time.Second
	firstIDs    = 128
)
