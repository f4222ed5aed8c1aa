package memory

import "strings"

// Rights are what may be done with memory. Those with Remote, and those after, are for peers.
type Rights uint16

// The rights.
const (
	// LocalWrite is what a stream needs to place there what its own side asked for: the
	// answer to a Read.
	LocalWrite Rights = 1 << iota
	RemoteRead
	// RemoteWrite includes the atomic write of eight bytes (COMMIT-034).
	RemoteWrite
	// RemoteAtomic is FetchAdd and CompareSwap.
	RemoteAtomic
	// FlushPersistent brings a file's bytes to its storage. Only files can have it.
	FlushPersistent
	// FlushGlobal makes bytes visible to everybody on the machine.
	FlushGlobal
	// Verify computes a hash of bytes as they are in storage, with [Options.Algorithm].
	Verify

	all       = Verify<<1 - 1
	modifying = LocalWrite | RemoteWrite | RemoteAtomic
)

var names = [...]string{"LocalWrite", "RemoteRead", "RemoteWrite", "RemoteAtomic", "FlushPersistent", "FlushGlobal", "Verify"}

// String names the rights as the constants do.
func (r Rights) String() string {
	var has []string
	for i, name := range names {
		if r>>i&1 != 0 {
			has = append(has, name)
		}
	}
	if r&^all != 0 {
		has = append(has, "unknown rights")
	}
	if has == nil {
		return "no rights"
	}
	return strings.Join(has, "|")
}
